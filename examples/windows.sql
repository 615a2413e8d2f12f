-- One query for each kind of window, and what else a query can be made of; over the flow records of flows.sql.
--
--   penstock generate bursty -o trace.parquet --rows 1500000 --option rate=3000
--   penstock check examples/windows.sql --set trace=trace.parquet
--   penstock run   examples/windows.sql --set trace=trace.parquet --output out
--
-- docs/language.md explains every part.

CREATE STREAM flows FROM 'parquet:${trace}' WATERMARK ts DELAY '2 seconds' MAX AHEAD '1 hour';

-- Sliding: the last minute, every ten seconds. A record is in six windows and is aggregated once, in its pane.
CREATE QUERY moving AS
  SELECT count(*) AS records, sum(bytes) * 8 / 60 AS bits_per_second, stddev(bytes) AS spread
  FROM flows [RANGE '1 minute' SLIDE '10 seconds'];

-- The slide need not divide the range: two panes for each slide, of five seconds.
CREATE QUERY uneven AS
  SELECT proto, count(*) AS records, max(bytes) AS largest
  FROM flows [RANGE '25 seconds' SLIDE '10 seconds']
  GROUP BY proto;

-- Gaps: one second of every ten is looked at. The other records are in no window and are filtered.
CREATE QUERY sampled AS
  SELECT count(*) AS records, sum(bytes) AS bytes
  FROM flows [RANGE '1 second' SLIDE '10 seconds'];

-- Landmark: everything since the first record, told once a minute.
CREATE QUERY so_far AS
  SELECT proto, count(*) AS records, sum(bytes) AS bytes
  FROM flows [WINDOW UNTIL NOW]
  GROUP BY proto
  EVERY 1 MINUTE;

-- Rows: ten thousand records at a time, every five thousand. The window is labelled with its first and last time.
CREATE QUERY by_count AS
  SELECT count(*) AS records, avg(bytes) AS mean, epoch(max(ts)) - epoch(min(ts)) AS seconds
  FROM flows [ROWS 10000 SLIDE 5000];

-- ORDER BY ... LIMIT: the five largest senders of each minute.
CREATE QUERY top AS
  SELECT src, sum(bytes) AS bytes, count(*) FILTER (WHERE flags = 2) AS opened
  FROM flows [RANGE '1 minute']
  GROUP BY src
  ORDER BY bytes DESC LIMIT 5;

-- Expressions as keys: the service's side of a record, and how large the record is.
CREATE QUERY services AS
  SELECT least(sport, dport) AS port,
         CASE WHEN bytes / packets < 100 THEN 'small' WHEN bytes / packets < 1000 THEN 'middle' ELSE 'full' END AS size,
         count(*) AS records, sum(bytes) AS bytes
  FROM flows [RANGE '1 minute']
  WHERE proto IN (6, 17) AND least(sport, dport) < 1024
  GROUP BY 1, 2;

-- A query on a query: how the minute's five largest senders compare, over five minutes. The time of a result is the
-- end of its window.
CREATE QUERY leaders AS
  SELECT src, count(*) AS minutes, sum(bytes) AS bytes, max(bytes) AS best
  FROM top [RANGE '5 minutes']
  GROUP BY src HAVING minutes > 1;
