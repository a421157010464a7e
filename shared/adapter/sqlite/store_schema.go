package sqlite

import "strings"

// storeSteps are the store's migrations; see DB.Migrate. Times are Unix nanoseconds, the
// precision of a record's JSON; NULL means never.
//
// A record is one document with a few columns for its indexes, derived from the
// document at every write; see columnsOf. Rows are numbered in the order of
// their creation, so rows written at the same time share pages. Indexes of only
// some runs are partial.
//
// There is no table of leases. The row of a run has the slot that the run holds, or its place
// in the queue, so the two cannot differ. side_slots has the slots of jobs and keys, changed in
// the same transaction. Triggers maintain the counts in pools, so finding a free slot counts no
// rows.
var storeSteps = []string{`
CREATE TABLE runs (
	n          INTEGER PRIMARY KEY,
	tenant     TEXT NOT NULL,
	id         TEXT NOT NULL,
	task_id    TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	version    INTEGER NOT NULL,
	state      TEXT NOT NULL,
	act_by     INTEGER, -- the execution is to have acted
	expires_at INTEGER, -- the record is to be forgotten
	purge_at   INTEGER, -- expires_at, where no output is left to delete
	output_due INTEGER, -- the output's bytes are to be deleted
	machine    INTEGER, -- 1: a machine is known, in ContainerCreating or Running
	pool       TEXT,    -- the pool with a limit that the run has a slot of or waits for
	since      INTEGER, -- its place in the pool's line; NULL: it holds a slot
	doc        BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX runs_id ON runs (tenant, id);
CREATE UNIQUE INDEX runs_task ON runs (tenant, task_id);
CREATE INDEX runs_created ON runs (tenant, created_at);
CREATE INDEX runs_state ON runs (tenant, state, created_at);
CREATE INDEX runs_act ON runs (act_by) WHERE act_by IS NOT NULL;
CREATE INDEX runs_purge ON runs (purge_at) WHERE purge_at IS NOT NULL;
CREATE INDEX runs_output ON runs (output_due) WHERE output_due IS NOT NULL;
CREATE INDEX runs_machine ON runs (tenant, id) WHERE machine IS NOT NULL;
CREATE INDEX runs_pool ON runs (tenant, pool, since, id) WHERE pool IS NOT NULL;

CREATE TABLE events (
	run INTEGER NOT NULL REFERENCES runs (n) ON DELETE CASCADE,
	seq INTEGER NOT NULL,
	doc BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX events_seq ON events (run, seq);

CREATE TABLE keys (
	tenant TEXT NOT NULL,
	key    TEXT NOT NULL,
	digest TEXT NOT NULL,
	run    INTEGER NOT NULL REFERENCES runs (n) ON DELETE CASCADE,
	PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX keys_run ON keys (run);

CREATE TABLE pools (
	tenant TEXT NOT NULL,
	pool   TEXT NOT NULL,
	held   INTEGER NOT NULL,
	queued INTEGER NOT NULL,
	PRIMARY KEY (tenant, pool)
) STRICT, WITHOUT ROWID;
` + runsTriggers("since"), `
-- The item of the heartbeats beside a run, while one is open. No foreign key:
-- it would be looked up at each opening, and the record is there.
CREATE TABLE beats (
	run        INTEGER PRIMARY KEY,
	attempt    INTEGER NOT NULL,
	worker     TEXT NOT NULL,
	at         INTEGER NOT NULL,
	progress   INTEGER,
	message    TEXT NOT NULL,
	token      TEXT NOT NULL,
	generation INTEGER NOT NULL,
	cancel     TEXT
) STRICT;
CREATE TRIGGER runs_deleted_beats AFTER DELETE ON runs BEGIN
	DELETE FROM beats WHERE run = old.n;
END;
CREATE TABLE reception (
	one       INTEGER PRIMARY KEY CHECK (one = 1),
	since     INTEGER,
	probed_at INTEGER
) STRICT;
`, `
-- Which machine an attempt has, in place of whether it has one: the index answers
-- the sweep by itself.
DROP INDEX runs_machine;
ALTER TABLE runs RENAME COLUMN machine TO has_machine;
ALTER TABLE runs ADD COLUMN attempt INTEGER;
ALTER TABLE runs ADD COLUMN machine TEXT;
UPDATE runs SET attempt = doc ->> '$.attempt.number', machine = doc ->> '$.attempt.machineId'
	WHERE has_machine IS NOT NULL;
ALTER TABLE runs DROP COLUMN has_machine;
CREATE INDEX runs_machine ON runs (tenant, id, state, attempt, machine) WHERE machine IS NOT NULL;
`, `
-- One row once the file has the record of every machine.
CREATE TABLE claim (one INTEGER PRIMARY KEY CHECK (one = 1)) STRICT;
-- The machine as JSON, in place of the text "app/id".
UPDATE runs SET machine = json_object('runner', 'fly', 'app', substr(machine, 1, instr(machine, '/') - 1),
	'id', substr(machine, instr(machine, '/') + 1)) WHERE machine IS NOT NULL;
-- The start gate of a pool: the token buckets of its apps.
CREATE TABLE gates (
	pool    TEXT PRIMARY KEY,
	version INTEGER NOT NULL,
	doc     BLOB NOT NULL
) STRICT, WITHOUT ROWID;
-- When to forward a heartbeat, and the limit that sweeps check.
ALTER TABLE beats ADD COLUMN token_at INTEGER;
ALTER TABLE beats ADD COLUMN previous INTEGER;
ALTER TABLE beats ADD COLUMN forward_every INTEGER NOT NULL DEFAULT 0;
ALTER TABLE beats ADD COLUMN timeout INTEGER NOT NULL DEFAULT 0;
CREATE INDEX beats_due ON beats (at + timeout) WHERE timeout > 0;
ALTER TABLE reception ADD COLUMN crowded INTEGER NOT NULL DEFAULT 0;
`, `
-- How many heartbeats were received.
ALTER TABLE beats ADD COLUMN received INTEGER NOT NULL DEFAULT 0;
-- The stored job that a run is of.
ALTER TABLE runs ADD COLUMN job TEXT;
CREATE INDEX runs_job ON runs (tenant, job, created_at) WHERE job IS NOT NULL;

-- The slots of jobs, beside those of pools: few runs have one, so they are no
-- columns of runs. since is as there.
CREATE TABLE job_slots (
	run    INTEGER PRIMARY KEY REFERENCES runs (n) ON DELETE CASCADE,
	tenant TEXT NOT NULL,
	id     TEXT NOT NULL,
	pool   TEXT NOT NULL,
	since  INTEGER
) STRICT;
CREATE INDEX job_slots_pool ON job_slots (tenant, pool, since, id);
CREATE TRIGGER job_slots_inserted AFTER INSERT ON job_slots BEGIN
	INSERT INTO pools VALUES (new.tenant, new.pool, new.since IS NULL, new.since IS NOT NULL)
		ON CONFLICT DO UPDATE SET held = held + excluded.held, queued = queued + excluded.queued;
END;
CREATE TRIGGER job_slots_updated AFTER UPDATE ON job_slots
WHEN old.pool <> new.pool OR (old.since IS NULL) <> (new.since IS NULL) BEGIN
	UPDATE pools SET held = held - (old.since IS NULL), queued = queued - (old.since IS NOT NULL)
		WHERE tenant = old.tenant AND pool = old.pool;
	INSERT INTO pools VALUES (new.tenant, new.pool, new.since IS NULL, new.since IS NOT NULL)
		ON CONFLICT DO UPDATE SET held = held + excluded.held, queued = queued + excluded.queued;
END;
CREATE TRIGGER job_slots_deleted AFTER DELETE ON job_slots BEGIN
	UPDATE pools SET held = held - (old.since IS NULL), queued = queued - (old.since IS NOT NULL)
		WHERE tenant = old.tenant AND pool = old.pool;
END;

-- Jobs. created_at distinguishes jobs that had the same id one after another.
CREATE TABLE jobs (
	n          INTEGER PRIMARY KEY,
	tenant     TEXT NOT NULL,
	id         TEXT NOT NULL,
	revision   INTEGER NOT NULL,
	version    INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	wake_at    INTEGER, -- the next firing is to be committed
	doc        BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX jobs_id ON jobs (tenant, id);
CREATE INDEX jobs_wake ON jobs (wake_at) WHERE wake_at IS NOT NULL;
-- The records of earlier versions.
CREATE TABLE job_versions (
	job     INTEGER NOT NULL REFERENCES jobs (n) ON DELETE CASCADE,
	version INTEGER NOT NULL,
	doc     BLOB NOT NULL,
	PRIMARY KEY (job, version)
) STRICT, WITHOUT ROWID;
-- The result of the run that ended last.
CREATE TABLE job_results (
	job      INTEGER PRIMARY KEY REFERENCES jobs (n) ON DELETE CASCADE,
	ended_at INTEGER NOT NULL,
	doc      BLOB NOT NULL
) STRICT;
`, `
-- The records of pools. created_at distinguishes pools that had the same id one after
-- another.
CREATE TABLE pool_records (
	n          INTEGER PRIMARY KEY,
	tenant     TEXT NOT NULL,
	id         TEXT NOT NULL,
	version    INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	slots      INTEGER, -- how many slots are granted, 0 while it drains; NULL: no limit
	drain_due  INTEGER, -- the remaining runs are to be cancelled
	doc        BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX pool_records_id ON pool_records (tenant, id);
CREATE INDEX pool_records_drain ON pool_records (drain_due) WHERE drain_due IS NOT NULL;
`, `
-- The place in a queue is a text that orders it, run.Slot.Order, in place of a time.
DROP INDEX runs_pool;
DROP TRIGGER runs_inserted;
DROP TRIGGER runs_updated;
DROP TRIGGER runs_deleted;
ALTER TABLE runs ADD COLUMN place TEXT; -- NULL: it holds a slot
UPDATE runs SET place = printf('%016x', since - 9223372036854775807 - 1) WHERE since IS NOT NULL;
ALTER TABLE runs DROP COLUMN since;
CREATE INDEX runs_pool ON runs (tenant, pool, place, id) WHERE pool IS NOT NULL;
` + runsTriggers("place") + `
-- The slots of keys, beside those of jobs: kind is job or key.
CREATE TABLE side_slots (
	run    INTEGER NOT NULL REFERENCES runs (n) ON DELETE CASCADE,
	kind   TEXT NOT NULL,
	tenant TEXT NOT NULL,
	id     TEXT NOT NULL,
	pool   TEXT NOT NULL,
	place  TEXT,
	PRIMARY KEY (run, kind)
) STRICT, WITHOUT ROWID;
INSERT INTO side_slots SELECT run, 'job', tenant, id, pool, printf('%016x', since - 9223372036854775807 - 1) FROM job_slots;
UPDATE side_slots SET place = NULL WHERE run IN (SELECT run FROM job_slots WHERE since IS NULL);
DROP TABLE job_slots;
CREATE INDEX side_slots_pool ON side_slots (tenant, pool, place, id);
CREATE TRIGGER side_slots_inserted AFTER INSERT ON side_slots BEGIN
	INSERT INTO pools VALUES (new.tenant, new.pool, new.place IS NULL, new.place IS NOT NULL)
		ON CONFLICT DO UPDATE SET held = held + excluded.held, queued = queued + excluded.queued;
END;
CREATE TRIGGER side_slots_updated AFTER UPDATE ON side_slots
WHEN old.pool <> new.pool OR (old.place IS NULL) <> (new.place IS NULL) BEGIN
	UPDATE pools SET held = held - (old.place IS NULL), queued = queued - (old.place IS NOT NULL)
		WHERE tenant = old.tenant AND pool = old.pool;
	INSERT INTO pools VALUES (new.tenant, new.pool, new.place IS NULL, new.place IS NOT NULL)
		ON CONFLICT DO UPDATE SET held = held + excluded.held, queued = queued + excluded.queued;
END;
CREATE TRIGGER side_slots_deleted AFTER DELETE ON side_slots BEGIN
	UPDATE pools SET held = held - (old.place IS NULL), queued = queued - (old.place IS NOT NULL)
		WHERE tenant = old.tenant AND pool = old.pool;
END;

-- The turns of keys in the queues of pools; see run.QueueState.
CREATE TABLE turns (
	tenant TEXT NOT NULL,
	pool   TEXT NOT NULL,
	turn   TEXT NOT NULL, -- run.Slot.Turn
	last   INTEGER NOT NULL,
	queued INTEGER NOT NULL,
	PRIMARY KEY (tenant, pool, turn)
) STRICT, WITHOUT ROWID;
`, `
-- The changes whose events are to be published: one for each commit of a run with
-- events, and one for the notes of a write. A number is never used again, because
-- readers continue behind one.
CREATE TABLE outbox (
	n   INTEGER PRIMARY KEY AUTOINCREMENT,
	id  TEXT,             -- of a change that was set aside
	at  INTEGER NOT NULL, -- in seconds
	doc BLOB NOT NULL     -- a port.Change; for a change that was set aside its record
) STRICT;
CREATE UNIQUE INDEX outbox_id ON outbox (id) WHERE id IS NOT NULL;
`, `
-- The warm machines of pools.
CREATE TABLE warm_machines (
	tenant  TEXT NOT NULL,
	pool    TEXT NOT NULL,
	id      TEXT NOT NULL,
	version INTEGER NOT NULL,
	doc     BLOB NOT NULL,
	PRIMARY KEY (tenant, pool, id)
) STRICT, WITHOUT ROWID;
`, `
-- The runs that have ended, in the order in which they are to be forgotten.
CREATE INDEX runs_expiry ON runs (expires_at) WHERE expires_at IS NOT NULL;
-- See Store.Probe.
CREATE TABLE probe (one INTEGER PRIMARY KEY CHECK (one = 1), filler BLOB NOT NULL) STRICT;
`, `
-- The last versions of deleted jobs.
CREATE TABLE deleted_jobs (
	tenant  TEXT NOT NULL,
	id      TEXT NOT NULL,
	version INTEGER NOT NULL,
	PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;
`, `
-- The first events of the run, a part for each commit; see historyOf. The others, and those
-- that earlier versions wrote, are rows of events.
ALTER TABLE runs ADD COLUMN history BLOB;
`, `
-- Parts of a history that are not packed, which earlier programs cannot read; see joinHistory.
UPDATE runs SET history = history WHERE 0;
`}

// runsTriggers returns the triggers that maintain pools for the rows of runs. place is the
// column of the place in the queue, NULL if the run holds a slot.
func runsTriggers(place string) string {
	return strings.ReplaceAll(`CREATE TRIGGER runs_inserted AFTER INSERT ON runs WHEN new.pool IS NOT NULL BEGIN
	INSERT INTO pools VALUES (new.tenant, new.pool, new.PLACE IS NULL, new.PLACE IS NOT NULL)
		ON CONFLICT DO UPDATE SET held = held + excluded.held, queued = queued + excluded.queued;
END;
CREATE TRIGGER runs_updated AFTER UPDATE OF pool, PLACE ON runs
WHEN old.pool IS NOT new.pool OR (old.PLACE IS NULL) <> (new.PLACE IS NULL) BEGIN
	UPDATE pools SET held = held - (old.PLACE IS NULL), queued = queued - (old.PLACE IS NOT NULL)
		WHERE tenant = old.tenant AND pool = old.pool;
	INSERT INTO pools SELECT new.tenant, new.pool, new.PLACE IS NULL, new.PLACE IS NOT NULL
		WHERE new.pool IS NOT NULL
		ON CONFLICT DO UPDATE SET held = held + excluded.held, queued = queued + excluded.queued;
END;
CREATE TRIGGER runs_deleted AFTER DELETE ON runs WHEN old.pool IS NOT NULL BEGIN
	UPDATE pools SET held = held - (old.PLACE IS NULL), queued = queued - (old.PLACE IS NOT NULL)
		WHERE tenant = old.tenant AND pool = old.pool;
END;
`, "PLACE", place)
}
