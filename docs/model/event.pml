/*
 * The protocol of one event, for spin. README.md describes it, check.sh runs it.
 *
 * Callers submit the same event (dedupe key, body, group) again and again to one
 * producer, with at most SUBMISSIONS submissions alive at once. SQS remembers an
 * accepted body for INTERVAL ticks and suppresses it meanwhile. Everything that
 * the producer does not control is a free choice: how long a submission waits,
 * what happens to a request, when a context ends, when the group pauses, when the
 * caller submits again.
 *
 * Times are countdowns: "lastStart = 3" means that it is 3 ticks away. A countdown
 * stops at 0, so that the number of states is finite without a limit on time.
 *
 * -DOLD selects the design before issue 11. The other names in #ifdef are
 * mutations and variants of the new design; README.md lists them.
 */

/* ---- constants -------------------------------------------------------- */

#ifndef SUBMISSIONS
#define SUBMISSIONS 3          /* alive at once: 2 or 3 */
#endif
#ifndef INTERVAL
#define INTERVAL 5             /* ticks for which SQS remembers an accepted body */
#endif
#define ATTEMPT 1              /* the longest attempt, in ticks, from start to arrival */
#define SLACK 1                /* the two clocks differ by at most this over any span */

/* What the producer subtracts and adds. The mutations leave something out. */
#ifdef NO_MARGIN
#define MARGIN 0
#else
#define MARGIN ATTEMPT
#endif
#ifdef NO_SLACK_BEFORE
#define SLACK_BEFORE 0
#else
#define SLACK_BEFORE SLACK
#endif
#ifdef NO_SLACK_AFTER
#define SLACK_AFTER 0
#else
#define SLACK_AFTER SLACK
#endif
#define HORIZON (INTERVAL - MARGIN - SLACK_BEFORE) /* an attempt may start before t0 + HORIZON */

/* How often a waiting submission looks its event up. */
#ifndef REFRESH
#define REFRESH 4
#endif

/* The properties. The run with -DCLOSE shows in addition that each submission gets an
 * outcome: spin reports one that has none as an invalid end state. -DONLY=n checks one of them, otherwise all but NEVER_LATE_DUPLICATE. */
#define ONE_OUTCOME 1          /* no submission gets two outcomes */
#define NO_SECOND 2            /* no second acceptance because of a submission made inside the interval */
#define NO_FALSE_NOT_STORED 3  /* "not stored" only if it is not stored, and no attempt may have stored it */
#define COPY_IS_DUPLICATE 4    /* no error for a copy of an event that is known to be stored */
#define SUCCESS_IS_TRUE 5      /* a receipt only if SQS accepted the event */
#define NEVER_LATE_DUPLICATE 6 /* "duplicate" only for a submission that was made inside the interval */

#ifdef ONLY
#define CHECKED(p) (ONLY == p)
#else
#define CHECKED(p) (p != NEVER_LATE_DUPLICATE)
#endif
#define HOLDS(p, condition) assert(!CHECKED(p) || (condition))

/* -DREACH=n: the run must reach the point n, otherwise the model shows nothing. */
#ifndef REACH
#define REACH 0
#endif
#define POINT(n) assert(REACH != n)

#define EACH(k) k : 0 .. SUBMISSIONS - 1

/* ---- SQS -------------------------------------------------------------- */

byte memory;                   /* ticks for which SQS still remembers the body */

/* A request is in the air until SQS takes it, or something drops it. */
#define NOWHERE 0
#define IN_AIR 1
#define TAKEN 2                /* accepted or suppressed: SQS answers with success */
#define LOOKED 3               /* LOOK_THEN_WAIT: looked up, not sent yet */
#define CHOSEN 4               /* in a request that the memory has not admitted yet */
byte request[SUBMISSIONS];     /* the attempt under way of each submission */
byte age[SUBMISSIONS];         /* of that attempt, in SQS's ticks */
byte since[SUBMISSIONS];       /* the same, in the producer's ticks */
byte stray[SUBMISSIONS];       /* a request in the air that the producer has given up: age + 1, or 0 */

/* What is true; the producer does not see these. */
bit inside[SUBMISSIONS];       /* submitted before the end of the interval of an acceptance */
bit known[SUBMISSIONS];        /* and the producer has the answer to it */
bit answered;                  /* the producer has an answer to the latest acceptance */
bit ever;                      /* SQS accepted the event at least once */
#ifdef FOREIGN
bit foreign;                   /* the latest acceptance is of another process */
#endif
bit ahead;                     /* by how much the producer's clock is ahead of SQS's: 0 or SLACK */

/* ---- the producer ----------------------------------------------------- */

#define IDLE 0                 /* not submitted yet */
#define ACTIVE 1               /* has no outcome yet */
#define DONE 2
byte phase[SUBMISSIONS];
bit tried[SUBMISSIONS];        /* OLD, LIMIT_OF_SUBMISSION: it made an attempt */

/* What is known of the event. */
#define UNKNOWN 0
#define CLAIMED 1              /* OLD only: an attempt began and none was answered */
#define DOUBT 2
#define STORED 3
byte event;
byte sweep;                    /* ticks since all waiting submissions looked the event up */
byte lastStart;                /* until t0 + HORIZON: no attempt starts when it is 0 */
byte forgotten;                /* until the record is dropped */

/* What a submission holds of it. */
byte held[SUBMISSIONS];        /* UNKNOWN, DOUBT or STORED */
byte heldStart[SUBMISSIONS];   /* lastStart of what is held. OLD: of the submission's own first attempt */
bit own[SUBMISSIONS];          /* OLD, ERRORS_DO_NOT_LOOK: an attempt of this submission was ambiguous */
bit opened[SUBMISSIONS];       /* OLD: the record is this submission's */
bit entered[SUBMISSIONS];      /* LATE_CAPTURE: it found room in the buffer */

#ifdef CLOSE
bit closed;                    /* Close was called: submissions fail */
bit over;                      /* the context of Close ended: the rest is withdrawn */
#else
#define closed 0
#define over 0
#endif

byte k, d;                     /* scratch, 0 between steps */

#define STARTED(j) (request[j] != NOWHERE && request[j] != CHOSEN)
#define UNDERWAY (STARTED(0) || STARTED(1) || STARTED(SUBMISSIONS - 1))
#define BUSY (request[0] || request[1] || request[SUBMISSIONS - 1])

#define SAY(text, j) printf(text, j + 1)

/* Makes states equal that differ in what no longer matters. */
inline tidy(j) {
	if
	:: phase[j] == DONE ->
		held[j] = UNKNOWN; heldStart[j] = 0; entered[j] = 0; known[j] = 0;
		if
		:: request[j] == NOWHERE -> tried[j] = 0; own[j] = 0; opened[j] = 0;
			if
			:: stray[j] == 0 -> inside[j] = 0; phase[j] = IDLE
			:: else
			fi
		:: else
		fi
	:: else
	fi
}

/* The submission looks its event up and keeps what it finds. What it holds of an
 * earlier record stays, above all the last start. */
inline look(j) {
#ifndef OLD
	if
	:: event != UNKNOWN && held[j] == UNKNOWN -> held[j] = event; heldStart[j] = lastStart
#ifdef NEWER_RECORD_REPLACES
	:: event != UNKNOWN && held[j] != UNKNOWN -> held[j] = event; heldStart[j] = lastStart
#else
	:: event == STORED && held[j] == DOUBT -> held[j] = STORED
#endif
	:: else
	fi;
#ifndef NO_EARLIEST
	if
	:: event != UNKNOWN && lastStart < heldStart[j] -> heldStart[j] = lastStart
	:: else
	fi;
#endif
#ifdef NOT_KEPT
	if
	:: event == UNKNOWN -> held[j] = UNKNOWN; heldStart[j] = 0
	:: else
	fi;
#endif
#endif
	skip
}

inline reportStored(j, locally) {
	HOLDS(ONE_OUTCOME, phase[j] == ACTIVE);
	HOLDS(SUCCESS_IS_TRUE, ever && (locally || inside[j]));
	HOLDS(NEVER_LATE_DUPLICATE, inside[j]);
	phase[j] = DONE;
	tidy(j)
}

inline reportInDoubt(j) {
	SAY("submission %d: outcome: IN DOUBT\n", j);
	HOLDS(ONE_OUTCOME, phase[j] == ACTIVE);
	HOLDS(COPY_IS_DUPLICATE, !known[j]);
	phase[j] = DONE;
	tidy(j)
}

inline reportNotStored(j) {
	SAY("submission %d: outcome: NOT STORED\n", j);
	POINT(1);
	HOLDS(ONE_OUTCOME, phase[j] == ACTIVE);
	HOLDS(NO_FALSE_NOT_STORED, !inside[j] && !stray[0] && !stray[1] && !stray[SUBMISSIONS - 1]);
	HOLDS(NO_FALSE_NOT_STORED, !UNDERWAY);
	HOLDS(COPY_IS_DUPLICATE, !known[j]);
	phase[j] = DONE;
	tidy(j)
}

#ifdef OLD

/* The record after the end of a submission without an answer. */
inline forget(j) {
	if
	:: STARTED(j) /* the answer decides */
	:: !STARTED(j) && own[j] && event == CLAIMED -> event = DOUBT; forgotten = INTERVAL + SLACK_AFTER
	:: !STARTED(j) && own[j] && event == DOUBT -> forgotten = INTERVAL + SLACK_AFTER
	:: !STARTED(j) && !own[j] && opened[j] && (event == CLAIMED || event == DOUBT) -> event = UNKNOWN; lastStart = 0; forgotten = 0
	:: else
	fi
}

/* An end without an answer: doubt only of this submission's own attempts. */
inline end(j) {
	forget(j);
	if
	:: own[j] || STARTED(j) -> reportInDoubt(j)
	:: else -> reportNotStored(j)
	fi
}

#else

/* An end without an answer: the context ended, the group paused, Close, no more
 * attempts, a last start that has passed. The event decides what is said. */
inline end(j) {
#ifdef ERRORS_DO_NOT_LOOK
	if
	:: own[j] || STARTED(j) -> reportInDoubt(j)
	:: else -> reportNotStored(j)
	fi
#else
	look(j);
	if
#ifdef NO_LOCAL_DUPLICATE
	:: held[j] == STORED -> reportInDoubt(j)
#else
	:: held[j] == STORED -> SAY("submission %d: outcome: DUPLICATE, known locally\n", j); POINT(2); reportStored(j, true)
#endif
	:: held[j] == DOUBT -> POINT(3); reportInDoubt(j)
#ifdef NO_UNDERWAY
	:: held[j] == UNKNOWN && STARTED(j) -> reportInDoubt(j)
	:: held[j] == UNKNOWN && !STARTED(j) -> reportNotStored(j)
#else
	:: held[j] == UNKNOWN && UNDERWAY -> reportInDoubt(j)
	:: held[j] == UNKNOWN && !UNDERWAY -> reportNotStored(j)
#endif
	fi
#endif
}

#endif

inline start(j) {
	SAY("submission %d: an attempt starts\n", j);
	HOLDS(NO_FALSE_NOT_STORED, phase[j] == ACTIVE); /* its outcome says whether it was started */
#ifdef LOOK_THEN_WAIT
	request[j] = LOOKED;
#else
	request[j] = IN_AIR;
#endif
	age[j] = 0;
	since[j] = 0;
#if defined(OLD) || defined(LIMIT_OF_SUBMISSION)
	tried[j] = 1
#endif
}

/* It is the submission's turn. */
inline turn(j) {
#ifdef OLD
	if
	:: !tried[j] -> /* looked up once; its own interval begins, or that of the doubt goes on */
		heldStart[j] = HORIZON;
		if
		:: event == UNKNOWN -> event = CLAIMED; lastStart = HORIZON; opened[j] = 1
		:: event == CLAIMED || event == DOUBT -> heldStart[j] = lastStart
		:: else
		fi;
		start(j)
	:: tried[j] && heldStart[j] > 0 -> start(j)
	:: else -> end(j)
	fi
#else
#ifndef NO_RECHECK
	look(j);
#endif
	if
#ifdef LIMIT_OF_SUBMISSION
	:: !tried[j] -> heldStart[j] = HORIZON; start(j)
	:: tried[j] && heldStart[j] > 0 -> start(j)
#elif defined(STORED_WITHOUT_LIMIT)
	:: held[j] == UNKNOWN || held[j] == STORED || heldStart[j] > 0 -> start(j)
#elif defined(STORED_IS_LOCAL)
	:: held[j] == UNKNOWN || (held[j] == DOUBT && heldStart[j] > 0) -> start(j)
#else
	:: held[j] == UNKNOWN || heldStart[j] > 0 -> start(j) /* an end is possible at any time, too */
#endif
	:: else -> end(j)
	fi
#endif
}

/* No answer, or one that proves nothing. */
inline ambiguous(j) {
#ifdef OLD
	own[j] = 1;
	d = 0;
#else
#ifdef ERRORS_DO_NOT_LOOK
	own[j] = 1;
#endif
#ifdef DOUBT_FROM_ANSWER
	d = HORIZON;
#else
	d = (HORIZON > since[j] -> HORIZON - since[j] : 0);
#endif
	if
	:: event == UNKNOWN -> event = DOUBT; lastStart = d
#ifdef LIMIT_OF_LATEST
	:: event == DOUBT -> lastStart = d
#else
	:: event == DOUBT && d < lastStart -> lastStart = d
#endif
#ifndef NO_EARLIEST
	:: event == STORED && d < lastStart -> lastStart = d /* only where two copies were under way at once */
#endif
	:: else
	fi;
	/* The request may arrive until ATTEMPT after its start, whenever the producer gave it up. */
#ifdef ENDS_FROM_ANSWER
	d = INTERVAL + SLACK_AFTER;
#else
	d = INTERVAL + SLACK_AFTER + (ATTEMPT > since[j] -> ATTEMPT - since[j] : 0);
#endif
	if
	:: event == DOUBT && forgotten == 0 -> forgotten = d
#ifndef ENDS_WITH_FIRST
	:: event == DOUBT && forgotten > 0 && d > forgotten -> forgotten = d
#endif
	:: else
	fi;
	d = 0;
#ifdef PUSH
	for (EACH(k)) {
		if
		:: phase[k] == ACTIVE -> look(k)
		:: else
		fi
	}
	k = 0;
#else
	/* A submission holds at once what its own attempt began. */
	if
	:: phase[j] == ACTIVE -> look(j)
	:: else
	fi;
#endif
#endif
	skip
}

/* SQS's proof that it has the event. */
inline proved(j) {
	answered = 1;
	for (EACH(k)) {
		if
		:: phase[k] == ACTIVE -> known[k] = inside[k]
		:: else
		fi
	}
	k = 0;
	d = (HORIZON > since[j] -> HORIZON - since[j] : 0);
	if
	:: event == UNKNOWN -> lastStart = d; forgotten = INTERVAL + SLACK_AFTER
	:: event == CLAIMED || event == DOUBT -> forgotten = INTERVAL + SLACK_AFTER /* accepted at t0 or later */
	:: event == STORED /* the answer has the same message ID */
	fi;
#ifndef NO_EARLIEST
	if
	:: event != UNKNOWN && d < lastStart -> lastStart = d /* only where two copies were under way at once */
	:: else
	fi;
#endif
	d = 0;
#if defined(FOREIGN) && !defined(FOREIGN_AS_OWN)
	if
	:: foreign -> lastStart = 0 /* accepted before t0, nobody knows when: do not send it again */
	:: else
	fi;
#endif
	event = STORED;
#ifdef PUSH
	for (EACH(k)) {
		if
		:: phase[k] == ACTIVE -> look(k)
		:: else
		fi
	}
	k = 0
#endif
}

/* SQS's proof that it did not take this attempt. It says nothing of earlier ones. */
inline refused(j) {
#ifdef REFUSAL_ENDS_DOUBT
	if
	:: event == DOUBT -> event = UNKNOWN; lastStart = 0; forgotten = 0
	:: else
	fi;
#endif
	skip
}

inline landed(j) {
	request[j] = NOWHERE;
	age[j] = 0;
	since[j] = 0
}

/* ---- the steps -------------------------------------------------------- */

/* SQS takes a request. */
inline take(j) {
	if
	:: memory > 0 -> SAY("submission %d: SQS suppresses it\n", j)
	:: else ->
		SAY("submission %d: SQS ACCEPTS it\n", j);
		if
		:: ever -> POINT(4)
		:: else
		fi;
#ifdef FOREIGN
		HOLDS(NO_SECOND, !known[j]); /* what the producer does not know, it cannot avoid */
		foreign = 0;
#else
		HOLDS(NO_SECOND, !inside[j]);
#endif
		memory = INTERVAL;
		accepted()
	fi
}

/* What follows from an acceptance. */
inline accepted() {
	ever = 1;
	answered = 0;
	for (EACH(k)) {
		if
		:: phase[k] != IDLE -> inside[k] = 1; tidy(k)
		:: else
		fi
	}
	k = 0
}

inline submit(j) {
	SAY("submission %d: submitted\n", j);
	phase[j] = ACTIVE;
	if
	:: memory > 0 -> inside[j] = 1; known[j] = answered
	:: else
	fi;
#if !defined(NO_CAPTURE) && !defined(LATE_CAPTURE)
	look(j);
#endif
	if
	:: closed -> end(j)
	:: else
	fi
}

#if defined(REFRESH_ONLY_UNKNOWN)
#define REFRESHED(k) (held[k] == UNKNOWN)
#elif defined(LATE_CAPTURE)
#define REFRESHED(k) (entered[k]) /* nothing looks at a caller that waits for room */
#else
#define REFRESHED(k) true
#endif

#define LESS(x) x = (x > d -> x - d : 0)

/* One tick of SQS's clock; d of the producer's: 0, 1 or 2. */
inline tick() {
	printf("tick\n");
	if
	:: memory > 0 -> memory--;
		if
		:: memory == 0 -> answered = 0
		:: else
		fi
	:: else
	fi;
	LESS(lastStart);
	if
	:: event == DOUBT || event == STORED ->
		if
		:: forgotten <= d ->
#ifdef PUSH_AT_END
			for (EACH(k)) {
				if
				:: phase[k] == ACTIVE -> look(k)
				:: else
				fi
			}
			k = 0;
#endif
			event = UNKNOWN; lastStart = 0; forgotten = 0;
			printf("the producer forgets the event\n")
		:: else -> forgotten = forgotten - d
		fi
	:: else
	fi;
	for (EACH(k)) {
		LESS(heldStart[k]);
		if
		:: request[k] != NOWHERE && request[k] != LOOKED -> age[k]++; since[k] = since[k] + d
		:: else
		fi;
		if
		:: stray[k] > 0 -> stray[k]++
		:: else
		fi
	}
#if !defined(OLD) && !defined(NO_REFRESH) && !defined(PUSH) && !defined(PUSH_AT_END)
	sweep = sweep + d;
	if
	:: sweep >= REFRESH -> sweep = 0;
		for (EACH(k)) {
			if
			:: phase[k] == ACTIVE && REFRESHED(k) -> look(k)
			:: else
			fi
		}
	:: else
	fi;
#endif
	k = 0;
	d = 0
}

/* A wait in the state CHOSEN is like a wait before it, so no time passes there. */
#define MAY_TICK(k) (age[k] < ATTEMPT && stray[k] <= ATTEMPT && request[k] != CHOSEN)

#ifdef RACE
#define FREE(j) (request[j] == NOWHERE)
#else
#define FREE(j) (!BUSY)        /* a copy waits for the first */
#endif

#ifdef LATE_CAPTURE
#define MAY_START(j) (phase[j] == ACTIVE && entered[j])
#else
#define MAY_START(j) (phase[j] == ACTIVE)
#endif

#ifdef OLD
#define AFTER(j) if :: phase[j] == DONE -> forget(j) :: else fi; tidy(j)
#else
#define AFTER(j) tidy(j)
#endif

#ifdef TWO_OUTCOMES
#define RECEIPT(j) true
#else
#define RECEIPT(j) phase[j] == ACTIVE
#endif

#ifdef NO_COMMIT
#define COMMITTED(j) (!over)   /* the request leaves with all that the memory admits */
#else
#define COMMITTED(j) (!over && phase[j] == ACTIVE)
#endif

#ifdef NO_WITHDRAWAL
#define MAY_END (!over)        /* Close forgets those that wait */
#else
#define MAY_END true
#endif

#ifdef RESEND_ONLY
/* No copies: the caller submits again only after the outcome. */
#define MAY_SUBMIT (SETTLED(0) && SETTLED(1) && SETTLED(SUBMISSIONS - 1))
#else
#define MAY_SUBMIT true
#endif

#define SETTLED(j) (phase[j] != ACTIVE && request[j] == NOWHERE && stray[j] == 0)

/* What can happen to a submission. Its place is free again once it has its
 * outcome and nothing of it is in the air: the number of submissions has no limit. */
proctype submission(byte j) {
	do
	:: d_step { !over && phase[j] == IDLE && MAY_SUBMIT -> submit(j) }
#ifdef LATE_CAPTURE
	:: d_step { phase[j] == ACTIVE && !entered[j] -> SAY("submission %d: finds room in the buffer\n", j); entered[j] = 1; look(j) }
#endif
	/* its turn comes, after any wait */
	:: d_step { !over && MAY_START(j) && FREE(j) -> request[j] = CHOSEN }
	/* the memory admits it or not; it may have got its outcome meanwhile */
	:: d_step { request[j] == CHOSEN -> request[j] = NOWHERE;
		if
		:: COMMITTED(j) -> turn(j)
		:: else -> SAY("submission %d: dropped from the request\n", j); tidy(j)
		fi }
	/* its context ends, its group pauses, Close gives up, it has no more tries */
	:: d_step { phase[j] == ACTIVE && MAY_END -> SAY("submission %d: its context ends, its group pauses or the producer closes\n", j); end(j) }

	/* the request */
#ifdef LOOK_THEN_WAIT
	:: d_step { request[j] == LOOKED -> SAY("submission %d: the request leaves\n", j); request[j] = IN_AIR }
#endif
	:: d_step { request[j] == IN_AIR -> request[j] = TAKEN; take(j) }
	:: d_step { request[j] == IN_AIR -> SAY("submission %d: refused: a throttle, or it never left\n", j); landed(j); refused(j); AFTER(j) }
	:: d_step { request[j] == IN_AIR -> SAY("submission %d: the request is lost, no answer\n", j); ambiguous(j); landed(j); AFTER(j) }
#ifndef FOREIGN
	/* the connection breaks, and the request may arrive all the same */
	:: d_step { request[j] == IN_AIR && stray[j] == 0 -> SAY("submission %d: no answer, the request is still in the air\n", j);
		stray[j] = age[j] + 1; ambiguous(j); landed(j); AFTER(j) }
	:: d_step { stray[j] > 0 -> stray[j] = 0; take(j); tidy(j) }
	:: d_step { stray[j] > 0 -> SAY("submission %d: the request is lost\n", j); stray[j] = 0; tidy(j) }
#endif

	/* the answer, which may come after the outcome */
#ifndef NO_ANSWERS
	:: d_step { request[j] == TAKEN -> proved(j); landed(j);
		if
		:: RECEIPT(j) -> SAY("submission %d: outcome: STORED or DUPLICATE, by SQS's answer\n", j); reportStored(j, false)
		:: else -> SAY("submission %d: a late answer: stored\n", j); tidy(j)
		fi }
#endif
	:: d_step { request[j] == TAKEN -> SAY("submission %d: the answer is lost\n", j); ambiguous(j); landed(j); AFTER(j) }
#ifdef WEAK_REFUSAL
	:: d_step { request[j] == TAKEN -> SAY("submission %d: an answer that proves nothing, read as a refusal\n", j); landed(j); refused(j); tidy(j) }
#endif
#ifdef WEAK_SUCCESS
	:: d_step { request[j] == IN_AIR -> SAY("submission %d: an answer that proves nothing, read as success\n", j); proved(j); landed(j);
		if
		:: phase[j] == ACTIVE -> reportStored(j, false)
		:: else -> tidy(j)
		fi }
#endif
#ifdef CLOSE
	:: d_step { over && SETTLED(j) -> skip } -> break
#endif
	od
}

#define ALL_MAY_TICK (!over && MAY_TICK(0) && MAY_TICK(1) && MAY_TICK(SUBMISSIONS - 1))

init {
	atomic {
#if SUBMISSIONS == 3
		run submission(2);
#endif
		run submission(1);
		run submission(0)
	}
	do
#ifdef FOREIGN
	:: d_step { !over && memory == 0 -> printf("the event is ACCEPTED from another process\n"); memory = INTERVAL; foreign = 1; accepted() }
#endif
	/* The producer's clock is level with SQS's or ahead by one tick, and may change once a tick. */
	:: d_step { ALL_MAY_TICK -> d = 1; tick() }
	:: d_step { ALL_MAY_TICK && ahead == 0 -> ahead = 1; d = 2; tick() }
	:: d_step { ALL_MAY_TICK && ahead == 1 -> ahead = 0; tick() }
#ifdef CLOSE
	:: d_step { !closed -> printf("Close\n"); closed = 1 }
	:: d_step { closed && !over -> printf("the context of Close ends\n"); over = 1 } -> break
#endif
	od
}
