-- The store of calls: its one table, and all that is asked of it. A row is inserted when a call is about to be made, and
-- filled when it is answered.

-- name: schema
-- A plain rowid table: WITHOUT ROWID halves the write rate. The request itself is not stored: it would be hundred times
-- the reply.
CREATE TABLE calls (
    key BLOB NOT NULL,
    model TEXT NOT NULL,
    query TEXT NOT NULL, -- empty: nothing asks for it any more
    owner TEXT, -- who makes it; NULL when it is over
    until REAL, -- when the owner last said that it is there, and so long after
    day TEXT, -- on which it was asked (UTC); NULL: not by a run over this file
    failed INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    cost REAL,
    messages BLOB NOT NULL, -- empty, as query is
    replicate INTEGER NOT NULL,
    reply TEXT -- NULL where there is none, or another call was answered first
)

-- name: index
CREATE INDEX calls_by_key ON calls (key)

-- name: ask
INSERT INTO calls VALUES (?, ?, '', ?, ?, ?, 1, 0, 0, NULL, x'', ?, NULL)

-- name: renew
UPDATE calls SET until = ? WHERE key = ? AND owner = ?

-- name: release
DELETE FROM calls WHERE key = ? AND owner = ?

-- name: forget
-- What it cost stays.
UPDATE calls SET reply = NULL WHERE key = ? AND owner IS NOT ?

-- name: fill
UPDATE calls SET owner = NULL, until = NULL, failed = ?, prompt_tokens = ?, completion_tokens = ?, cost = ?,
    reply = ? WHERE key = ? AND owner = ?

-- name: add
-- Without a day: it was not paid by a run over this file.
INSERT INTO calls VALUES (?, ?, '', NULL, NULL, NULL, ?, ?, ?, NULL, x'', ?, ?)

-- name: replies
SELECT key, reply FROM calls WHERE key IN (%s) AND reply IS NOT NULL

-- name: replies_and_owners
SELECT rowid, key, owner, coalesce(until, 0), reply FROM calls WHERE key IN (%s)
    AND (reply IS NOT NULL OR owner IS NOT NULL)

-- name: give_up
-- It was paid, for all that is known.
UPDATE calls SET owner = NULL, until = NULL WHERE rowid = ?

-- name: overtake
-- The call was answered while another process made it again. That one is paid, and its reply comes too late.
UPDATE calls SET owner = NULL, until = NULL WHERE key = ? AND owner IS NOT NULL

-- name: entries
SELECT rowid, key, model, replicate, reply FROM calls WHERE rowid > ? AND reply IS NOT NULL ORDER BY rowid LIMIT 1000

-- name: counts
-- A damaged reply is named when it is asked for; it is counted without its fields.
SELECT model, count(*), sum(json_extract(said, '$.status') IS 'truncated'),
    sum(coalesce(json_extract(said, '$.prompt_tokens'), 0)), sum(coalesce(json_extract(said, '$.completion_tokens'), 0)),
    sum(length(reply))
FROM (SELECT model, reply, iif(json_valid(reply), reply, '{}') AS said FROM calls WHERE reply IS NOT NULL)
GROUP BY model ORDER BY model

-- name: ledger
SELECT day, model, count(*), sum(failed), sum(prompt_tokens), sum(completion_tokens), sum(cost)
FROM calls WHERE day IS NOT NULL AND (owner IS NULL OR until < ?)
GROUP BY day, model, cost IS NOT NULL ORDER BY day, model, cost IS NOT NULL

-- name: last_final
SELECT coalesce(
    (SELECT min(rowid) - 1 FROM calls WHERE rowid > :after AND owner IS NOT NULL AND until >= :now), max(rowid), 0
) FROM calls

-- name: paid
SELECT is_final, count(*), total(cost), sum(is_unknown), sum(is_ours AND NOT is_unknown),
    total(iif(is_ours, cost, 0)), sum(is_silent), sum(is_free AND NOT is_ours)
FROM (
    SELECT rowid <= :last AS is_final, model = :model AS is_ours,
        cost IS NULL AS is_free, cost IS NULL AND failed AND NOT prompt_tokens + completion_tokens AS is_unknown,
        model = :model AND cost IS NULL AND NOT failed AND NOT prompt_tokens AS is_silent,
        coalesce(cost, (model = :model) * (prompt_tokens * :shown + completion_tokens * :written) / 1e6) AS cost
    FROM calls WHERE rowid > :after AND day IS NOT NULL
) GROUP BY 1
