-- What comes too fast to be read in time: five queries that promise their results 2 seconds after a window's end.
--
--   make demo-overload                                 one burst of five times what can be read, with a table and a picture
--   penstock run examples/overload.sql --set stream=generate:bursty --set speed=5 --output out
--
-- The stream is replayed by the clock: with speed=5 five seconds of it come in one second. In quiet times all records
-- are read, and results are exact. Where a burst leaves no time for that, one record of 2, 4, 8, ... neighbours is,
-- and what the others would have added is estimated: every aggregate x has the columns exact_x, estimated_x and
-- error_x (one standard error) beside it.

CREATE STREAM flows FROM 'replay:${stream}' WITH (speed = ${speed})
  WATERMARK ts DELAY '100 milliseconds'
  ON OVERLOAD KEEP RESERVOIR (4096);

-- How much is there?
CREATE QUERY totals AS
  SELECT count(*) AS records, sum(bytes) AS bytes
  FROM flows [RANGE '10 seconds']
  LIMIT DELAY TO '2 seconds';

-- Of what kind?
CREATE QUERY protocols AS
  SELECT proto, count(*) AS records, sum(bytes) AS bytes, avg(bytes) AS mean
  FROM flows [RANGE '10 seconds']
  GROUP BY proto
  LIMIT DELAY TO '2 seconds';

-- Which services are used?
CREATE QUERY services AS
  SELECT dport, count(*) AS records, sum(bytes) AS bytes
  FROM flows [RANGE '10 seconds']
  WHERE dport < 1024
  GROUP BY dport
  LIMIT DELAY TO '2 seconds';

-- Who sends most? Of those that are known well enough.
CREATE QUERY talkers AS
  SELECT src, count(*) AS records, sum(bytes) AS bytes
  FROM flows [RANGE '10 seconds']
  GROUP BY src HAVING error_bytes <= 0.5 * bytes
  ORDER BY bytes DESC LIMIT 20
  LIMIT DELAY TO '2 seconds';

-- Between which networks, over the last half minute?
CREATE QUERY networks AS
  SELECT src/16 AS net, dst/16 AS peer, count(*) AS records, sum(bytes) AS bytes
  FROM flows [RANGE '30 seconds' SLIDE '10 seconds']
  GROUP BY src/16, dst/16 HAVING records >= 100
  LIMIT DELAY TO '2 seconds';
