package sqlstore

// second is the second schema step. It ends all writes by programs of version 1, because
// they do not detect a clock that was set back. Row "clock" is the largest time seen. Row
// "trimmed" is the number of the seal up to which entries may be deleted.
const second = `INSERT INTO idempotency_meta (name, value) VALUES ('clock', 0), ('trimmed', 0);

UPDATE idempotency_keys SET expires_at = created_at WHERE status = 'released' AND expires_at IS NULL`

// wellFormed is the SQL condition for a row whose values ledger.Entry can represent
// exactly.
const wellFormed = `length(hash) = 32 AND (request_hash IS NULL OR length(request_hash) = 32) AND (body_hash IS NULL OR length(body_hash) = 32)
    AND (response_hash IS NULL OR length(response_hash) = 32) AND length(scope) <= 512 AND length(key) <= 2048
    AND replay_safe >= 0 AND replay_safe <= 1 AND resend >= 0 AND resend <= 1`

const sqliteSecond = `CREATE TRIGGER idempotency_ledger_form BEFORE INSERT ON idempotency_ledger
WHEN NOT EXISTS (SELECT 1 FROM (SELECT NEW.hash AS hash, NEW.request_hash AS request_hash, NEW.body_hash AS body_hash, NEW.response_hash AS response_hash,
    NEW.scope AS scope, NEW.key AS key, NEW.replay_safe AS replay_safe, NEW.resend AS resend) WHERE ` + wellFormed + `)
  BEGIN SELECT RAISE(ABORT, 'idempotency_ledger: not an entry'); END;

DROP TRIGGER idempotency_ledger_delete;

CREATE TRIGGER idempotency_ledger_delete BEFORE DELETE ON idempotency_ledger
WHEN OLD.seq >= coalesce((SELECT end_seq FROM idempotency_seals WHERE n = (SELECT value FROM idempotency_meta WHERE name = 'trimmed')), 0)
  BEGIN SELECT RAISE(ABORT, 'idempotency_ledger is append-only'); END;

DROP TRIGGER idempotency_seals_delete;

CREATE TRIGGER idempotency_seals_delete BEFORE DELETE ON idempotency_seals
WHEN OLD.n >= (SELECT value FROM idempotency_meta WHERE name = 'trimmed')
  BEGIN SELECT RAISE(ABORT, 'idempotency_seals is append-only'); END`

// The sequence is renamed so that programs of version 1 do not find it and cannot claim
// keys. The function idempotency_begin_epoch updates table idempotency_sealer. It is
// SECURITY DEFINER, because the application's role must not update this table.
const postgresSecond = `ALTER SEQUENCE idempotency_fence RENAME TO idempotency_draws;

ALTER TABLE idempotency_ledger ADD CONSTRAINT idempotency_ledger_form CHECK (` + wellFormed + `) NOT VALID;

DROP TRIGGER idempotency_ledger_append_only ON idempotency_ledger;

DROP TRIGGER idempotency_seals_append_only ON idempotency_seals;

CREATE TRIGGER idempotency_ledger_append_only BEFORE UPDATE OR TRUNCATE ON idempotency_ledger
  FOR EACH STATEMENT EXECUTE FUNCTION idempotency_append_only();

CREATE TRIGGER idempotency_seals_append_only BEFORE UPDATE OR TRUNCATE ON idempotency_seals
  FOR EACH STATEMENT EXECUTE FUNCTION idempotency_append_only();

CREATE FUNCTION idempotency_delete_entry() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS
  'BEGIN
    IF EXISTS (SELECT 1 FROM idempotency_meta AS m JOIN idempotency_seals AS s ON s.n = m.value
        WHERE m.name = ''trimmed'' AND (OLD.epoch, OLD.xid, OLD.seq) < (s.epoch, s.end_transaction, s.end_seq)) THEN
      RETURN OLD;
    END IF;
    RAISE EXCEPTION ''% is append-only'', TG_TABLE_NAME;
  END';

CREATE FUNCTION idempotency_delete_seal() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS
  'BEGIN
    IF OLD.n < (SELECT value FROM idempotency_meta WHERE name = ''trimmed'') THEN
      RETURN OLD;
    END IF;
    RAISE EXCEPTION ''% is append-only'', TG_TABLE_NAME;
  END';

CREATE TRIGGER idempotency_ledger_delete BEFORE DELETE ON idempotency_ledger FOR EACH ROW EXECUTE FUNCTION idempotency_delete_entry();

CREATE TRIGGER idempotency_seals_delete BEFORE DELETE ON idempotency_seals FOR EACH ROW EXECUTE FUNCTION idempotency_delete_seal();

CREATE FUNCTION idempotency_begin_epoch() RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS
  'BEGIN
    -- Transactions that have written with the old epoch end first, later writers wait.
    LOCK TABLE idempotency_ledger IN EXCLUSIVE MODE;
    UPDATE idempotency_sealer SET epoch = epoch + 1, horizon = 0, server = (SELECT system_identifier FROM pg_control_system())
    WHERE id = 1 AND (server <> (SELECT system_identifier FROM pg_control_system()) OR horizon > pg_snapshot_xmax(pg_current_snapshot())::text::bigint);
  END'`
