/*
 * The protocol of one event with a store, for spin. README.md describes it, check.sh
 * runs it.
 *
 * Two processes send the same event, again and again, and crash at any step. Each claims
 * the event in a store that outlives them, makes attempts, and tells the store what they
 * came to. SQS remembers an accepted body for INTERVAL ticks and suppresses it meanwhile.
 * Everything that a process does not control is a free choice: how long it waits, what
 * happens to a request or to an answer of the store, when a context ends, when a process
 * is killed, when the caller submits again.
 *
 * Times are countdowns that stop at 0, as in event.pml. The names in #ifdef are mutations
 * of the design; README.md lists them.
 */

/* ---- constants -------------------------------------------------------- */

#ifndef INTERVAL
#define INTERVAL 6             /* ticks for which SQS remembers an accepted body */
#endif
#define ATTEMPT 1              /* the longest attempt, from start to arrival */
#define LEASE 2                /* of a claim: an attempt, and a slow store */
#define SLACK 1                /* SQS's clock and that of all others differ by at most this over any span */
#ifndef TTL
#define TTL 6                  /* of a record that has an outcome, from its creation */
#endif

/* A claim after this, counted from the first one, is not granted if an attempt is in doubt. */
#if defined(WINDOW_WITHOUT_LEASE)
#define RESEND (INTERVAL - SLACK)
#elif defined(WINDOW_WITHOUT_SLACK)
#define RESEND (INTERVAL - LEASE)
#else
#define RESEND (INTERVAL - LEASE - SLACK)
#endif

/* The properties. -DONLY=n checks one of them, otherwise all but NEVER_STALE. */
#define NO_SECOND 1            /* SQS accepts the event once for each generation of its record */
#define SUCCESS_IS_TRUE 2      /* a receipt, and a duplicate, only if SQS has confirmed the event in this generation */
#define NO_FALSE_NOT_STORED 3  /* "not stored", under a claim, only if it is not stored and no attempt may store it */
#define NEVER_STALE 4          /* "not stored" under a claim whose lease has ended, likewise */

#ifdef ONLY
#define CHECKED(p) (ONLY == p)
#else
#define CHECKED(p) (p != NEVER_STALE)
#endif
#define HOLDS(p, condition) assert(!CHECKED(p) || (condition))

/* -DREACH=n: the run must reach the point n, otherwise the model shows nothing. */
#ifndef REACH
#define REACH 0
#endif
#define POINT(n) assert(REACH != n)

#define SAY(text) printf(text, p + 1)

/* ---- SQS and the truth, which no process sees -------------------------- */

byte memory;                   /* ticks for which SQS still remembers the body */
bit accepted;                  /* SQS accepted the event in this generation */
bit confirmed;                 /* or suppressed it, for a message that it still remembered */
bit ahead;                     /* by how much the clock of the others is ahead of SQS's: 0 or SLACK */

/* ---- the store: one record, each transition durable and atomic ---------- */

#define ABSENT 0
#define RUNNING 1
#define SUCCEEDED 2
#define FAILED 3
byte status;
byte lease;                    /* until the claim may be taken over */
byte resend;                   /* until an attempt in doubt is too old for another one */
byte expires;                  /* of a record that has an outcome */
bit prior;                     /* RUNNING: attempts of earlier claims are in doubt */
bit failed;                    /* RUNNING: the record was FAILED before this claim */
bit fence[2];                  /* the last claim is that of the process, and has not ended */

/* ---- a process --------------------------------------------------------- */

#define IDLE 0
#define ASKING 1               /* has to claim the event before an attempt */
#define GRANTED 2
#define FLYING 3               /* a request is under way */
byte phase[2];
bit held[2];                   /* it knows of its claim */
bit clear[2];                  /* the store has said that no other claim may have stored it */
bit ours[2];                   /* an attempt of this submission is in doubt */
bit refused[2];                /* SQS refused an attempt of this submission */
byte until[2];                 /* the end of the lease, by the claim's own count */

#define NOTHING 0
#define COMPLETE 1
#define FAIL 2
#define RELEASE 3
byte owed[2];                  /* what it has to tell the store, whenever it gets there */

/* Its requests: the one that it waits for, and one that it has given up. */
#define NOWHERE 0
#define IN_AIR 1
#define TAKEN 2                /* accepted or suppressed: SQS answers with success */
byte request[2];
byte age[2];
byte stray[2];                 /* age + 1, or 0 */
bit old[2];                    /* the requests are of an earlier generation */

byte d;                        /* scratch */

#define QUIET (request[0] != IN_AIR && request[1] != IN_AIR && !stray[0] && !stray[1])
#define OTHER (1 - p)

inline forget() {
	phase[p] = IDLE; held[p] = 0; clear[p] = 0; ours[p] = 0; refused[p] = 0; until[p] = 0;
	request[p] = NOWHERE; age[p] = 0;
	if
	:: stray[p] == 0 -> old[p] = 0
	:: else
	fi
}

/* ---- what is said to the caller ---------------------------------------- */

inline reportStored() {
	HOLDS(SUCCESS_IS_TRUE, confirmed || old[p]);
	forget()
}

inline reportDuplicate() {
	SAY("process %d: outcome: DUPLICATE, by the store\n");
	POINT(1);
	HOLDS(SUCCESS_IS_TRUE, confirmed);
	forget()
}

/* An end without proof: the context ends, there are no more attempts. What the store has
 * to know is told later. */
inline end() {
	if
	:: clear[p] && !ours[p] -> SAY("process %d: outcome: NOT STORED\n"); POINT(2);
		HOLDS(NO_FALSE_NOT_STORED, until[p] == 0 || (!confirmed && QUIET));
		HOLDS(NEVER_STALE, !confirmed && QUIET)
	:: else -> SAY("process %d: outcome: IN DOUBT\n")
	fi;
	if
#ifdef RELEASE_IN_DOUBT
	:: held[p] -> owed[p] = RELEASE
#else
	:: held[p] && !ours[p] && refused[p] -> owed[p] = FAIL
	:: held[p] && !ours[p] && !refused[p] -> owed[p] = RELEASE
#endif
	:: else
	fi;
	forget()
}

/* ---- claims ------------------------------------------------------------- */

inline generation() {
	printf("the record has expired: a new generation\n");
	accepted = 0; confirmed = 0; fence[0] = 0; fence[1] = 0;
	if
	:: request[0] != NOWHERE || stray[0] -> old[0] = 1
	:: else
	fi;
	if
	:: request[1] != NOWHERE || stray[1] -> old[1] = 1
	:: else
	fi
}

/* The store grants the claim. */
inline grant() {
	status = RUNNING; lease = LEASE; fence[OTHER] = 0; fence[p] = 1
}

/* The process has the answer. A lease is counted from before the question. */
inline granted() {
	held[p] = 1;
	until[p] = LEASE;
#ifdef DOUBT_NOT_TOLD
	clear[p] = 1;
#else
	clear[p] = !prior;
#endif
	if
#ifndef NO_LATE_CHECK
	:: resend == 0 && (ours[p] || !clear[p]) -> SAY("process %d: too late for another attempt\n"); end()
	:: else -> phase[p] = GRANTED
#else
	:: true -> phase[p] = GRANTED
#endif
	fi
}

#ifdef NO_LEASES
#define LEASED false
#else
#define LEASED (lease > 0)
#endif
#define UNCLAIMED (status == ABSENT || status == FAILED || EXPIRED)

#define EXPIRED ((status == SUCCEEDED || status == FAILED) && expires == 0)

/* d: the claim was granted. */
inline ask() {
	d = 0;
	if
	:: UNCLAIMED ->
		failed = (status == FAILED && !EXPIRED);
		if
		:: EXPIRED -> generation(); POINT(3)
		:: else
		fi;
		SAY("process %d: claims it: new\n");
		expires = TTL; resend = RESEND; prior = 0; grant(); d = 1
	:: status == SUCCEEDED && !EXPIRED -> reportDuplicate()
	:: status == RUNNING && fence[p] -> SAY("process %d: claims it: renewed\n"); lease = LEASE; d = 1
	:: status == RUNNING && !fence[p] && LEASED -> SAY("process %d: claims it: in progress elsewhere\n"); clear[p] = 0; held[p] = 0
	:: status == RUNNING && !fence[p] && !LEASED && resend > 0 ->
		SAY("process %d: claims it: reclaimed\n"); POINT(4);
		prior = 1; failed = 0; grant(); d = 1;
#ifdef WINDOW_FROM_RECLAIM
		resend = RESEND
#endif
	:: status == RUNNING && !fence[p] && !LEASED && resend == 0 ->
#ifdef SEND_AGAIN
		SAY("process %d: claims it: reclaimed, by choice\n");
		prior = 1; failed = 0; grant(); resend = RESEND; d = 1
#else
		SAY("process %d: claims it: indeterminate, HELD\n"); POINT(5); clear[p] = 0; held[p] = 0; end()
#endif
	fi
}

/* ---- transitions --------------------------------------------------------- */

inline settle() {
	if
	:: owed[p] == COMPLETE ->
		if
#ifdef COMPLETE_WITHOUT_FENCE
		:: true ->
#else
		:: status == RUNNING && fence[p] ->
#endif
			SAY("process %d: the store has the result\n"); status = SUCCEEDED; fence[0] = 0; fence[1] = 0
		:: else -> SAY("process %d: its completion is stale\n"); POINT(6)
		fi
	:: owed[p] != COMPLETE ->
		if
#ifdef FAIL_WITHOUT_FENCE
		:: status == RUNNING ->
#else
		:: status == RUNNING && fence[p] ->
#endif
			fence[0] = 0; fence[1] = 0; lease = 0;
			if
#ifndef PRIOR_FORGOTTEN
			:: prior
#endif
			:: !prior && owed[p] == FAIL -> SAY("process %d: the record is failed\n"); status = FAILED
#ifdef PRIOR_FORGOTTEN
			:: prior -> status = FAILED
#endif
			:: !prior && owed[p] == RELEASE && failed -> SAY("process %d: the record is failed, as before\n"); status = FAILED
			:: !prior && owed[p] == RELEASE && !failed -> SAY("process %d: the claim is released\n"); status = ABSENT; expires = 0
			fi
		:: else -> SAY("process %d: its failure or release is stale\n")
		fi
	fi;
	owed[p] = NOTHING
}

/* ---- requests -------------------------------------------------------------- */

inline take() {
	if
	:: memory > 0 -> SAY("process %d: SQS suppresses its request\n")
	:: else -> SAY("process %d: SQS ACCEPTS its request\n");
		HOLDS(NO_SECOND, !accepted && !old[p]);
		memory = INTERVAL; accepted = 1
	fi;
	if
	:: !old[p] -> confirmed = 1
	:: else
	fi
}

inline landed() { request[p] = NOWHERE; age[p] = 0; phase[p] = ASKING }

inline leave() {
	SAY("process %d: a request leaves\n");
	phase[p] = FLYING; request[p] = IN_AIR; age[p] = 0; old[p] = 0
}

inline crash() {
	SAY("process %d: CRASHES\n");
	if
	:: request[p] == IN_AIR -> stray[p] = age[p] + 1
	:: else
	fi;
	fence[p] = 0; /* nobody has its token any more */
	owed[p] = NOTHING;
	forget()
}

#ifdef NO_LEASE_CHECK
#define COVERED true
#else
#define COVERED (until[p] >= ATTEMPT)
#endif

proctype process(byte p) {
	do
	:: d_step { phase[p] == IDLE && owed[p] == NOTHING && stray[p] == 0 -> SAY("process %d: the event is submitted\n"); phase[p] = ASKING; fence[p] = 0 /* another token */ }

#ifdef SEND_FIRST
	/* the first request leaves if the store knows of nobody else; the claim comes after it */
	:: d_step { phase[p] == ASKING && UNCLAIMED && !ours[p] && !refused[p] -> leave() }
	:: d_step { phase[p] == FLYING && UNCLAIMED && !held[p] -> ask(); d = 0; held[p] = 1; clear[p] = 1; until[p] = LEASE }
	:: d_step { phase[p] == ASKING && (!UNCLAIMED || ours[p] || refused[p]) -> ask();
#else
	:: d_step { phase[p] == ASKING -> ask();
#endif
		if
		:: d == 1 -> granted()
		:: else
		fi;
		d = 0 }
	/* the claim is made, and the answer is lost: the next one finds it by its token */
#ifndef SEND_FIRST
	:: d_step { phase[p] == ASKING && status != SUCCEEDED -> ask(); d = 0 }
#endif
#ifdef FAIL_OPEN
	:: d_step { phase[p] == ASKING && !held[p] -> SAY("process %d: the store does not answer\n"); leave() }
#endif
	/* what has waited for too long claims again */
	:: d_step { phase[p] == GRANTED && COVERED -> leave() }
	:: d_step { phase[p] == GRANTED && !COVERED -> phase[p] = ASKING }
	:: d_step { phase[p] == ASKING || phase[p] == GRANTED -> SAY("process %d: the context ends\n"); end() }

	/* the request */
	:: d_step { request[p] == IN_AIR -> request[p] = TAKEN; take() }
	:: d_step { request[p] == IN_AIR -> SAY("process %d: refused: a throttle, or it never left\n"); refused[p] = 1; landed();
#ifdef REFUSAL_ENDS_DOUBT
		ours[p] = 0
#endif
		}
	:: d_step { request[p] == IN_AIR -> SAY("process %d: the request is lost, no answer\n"); ours[p] = 1; landed() }
	:: d_step { request[p] == IN_AIR && stray[p] == 0 -> SAY("process %d: no answer, the request is still in the air\n"); stray[p] = age[p] + 1; ours[p] = 1; landed() }
	:: d_step { stray[p] > 0 -> take(); stray[p] = 0 }
	:: d_step { stray[p] > 0 -> SAY("process %d: the request is lost\n"); stray[p] = 0 }

	/* the answer */
	:: d_step { request[p] == TAKEN -> SAY("process %d: outcome: STORED, by SQS's answer\n");
		if
		:: held[p] -> owed[p] = COMPLETE
		:: else
		fi;
		reportStored() }
	:: d_step { request[p] == TAKEN -> SAY("process %d: the answer is lost\n"); ours[p] = 1; landed() }
#ifdef WEAK_SUCCESS
	:: d_step { request[p] == IN_AIR -> SAY("process %d: an answer that proves nothing, read as success\n"); owed[p] = COMPLETE; forget() }
#endif

	/* the store, whenever it is told */
	:: d_step { owed[p] != NOTHING -> settle() }

	:: d_step { phase[p] != IDLE && (stray[p] == 0 || request[p] != IN_AIR) || owed[p] != NOTHING -> crash() }
	od
}

#define LESS(x) x = (x > d -> x - d : 0)

/* One tick of SQS's clock; d of that of the others: 0, 1 or 2. */
inline tick() {
	printf("tick\n");
	if
	:: memory > 0 -> memory--
	:: else
	fi;
	LESS(lease); LESS(resend); LESS(until[0]); LESS(until[1]);
	if
	:: status != ABSENT -> LESS(expires)
	:: else
	fi;
	if
	:: request[0] == IN_AIR -> age[0]++
	:: else
	fi;
	if
	:: request[1] == IN_AIR -> age[1]++
	:: else
	fi;
	if
	:: stray[0] > 0 -> stray[0]++
	:: else
	fi;
	if
	:: stray[1] > 0 -> stray[1]++
	:: else
	fi;
	d = 0
}

#define MAY_TICK (age[0] < ATTEMPT && age[1] < ATTEMPT && stray[0] <= ATTEMPT && stray[1] <= ATTEMPT)

#ifdef SETTLED_EARLY
#define FOUND_OUT (lease == 0)
#else
#define FOUND_OUT (lease == 0 && resend == 0 && QUIET)
#endif

init {
	atomic {
		run process(1);
		run process(0)
	}
	do
	:: d_step { MAY_TICK -> d = 1; tick() }
	:: d_step { MAY_TICK && ahead == 0 -> ahead = 1; d = 2; tick() }
	:: d_step { MAY_TICK && ahead == 1 -> ahead = 0; d = 0; tick() }

	/* somebody has found out what became of an event that is held, and settles it */
	:: d_step { status == RUNNING && FOUND_OUT && confirmed -> printf("it is settled: stored\n"); status = SUCCEEDED; fence[0] = 0; fence[1] = 0 }
	:: d_step { status == RUNNING && FOUND_OUT && !confirmed -> printf("it is settled: not stored\n"); status = FAILED; fence[0] = 0; fence[1] = 0 }
#ifdef CLAIM_LOST
	/* the claim was acknowledged and was not durable */
	:: d_step { status == RUNNING -> printf("the store forgets the claim\n"); status = ABSENT; fence[0] = 0; fence[1] = 0; lease = 0; resend = 0; expires = 0; prior = 0 }
#endif
	od
}
