-- A dozen monitoring queries over one stream of flow records: one scan, one Spark streaming query.
--
--   penstock generate bursty -o trace.parquet --rows 1500000 --option rate=3000
--   penstock check examples/flows.sql --set trace=trace.parquet
--   penstock run   examples/flows.sql --set trace=trace.parquet --output out
--
-- The source knows its columns (ts, src, dst, sport, dport, proto, tos, flags, in_if, out_if, ttl, vlan, src_as,
-- dst_as, bytes, packets), so the stream is declared without them. A window is closed, and its rows are written,
-- once the stream is 2 seconds past its end.

CREATE STREAM flows FROM 'parquet:${trace}' WATERMARK ts DELAY '2 seconds';

-- How much is there? One row a second: the bursts.
CREATE QUERY rate AS
  SELECT count(*) AS records, sum(packets) AS packets, sum(bytes) AS bytes
  FROM flows [RANGE '1 second'];

-- Of what kind?
CREATE QUERY protocols AS
  SELECT proto, count(*) AS records, sum(bytes) AS bytes
  FROM flows [RANGE '10 seconds' SLIDE '10 seconds']
  GROUP BY proto;

-- How large are the records of each protocol?
CREATE QUERY sizes AS
  SELECT proto, avg(bytes) AS mean, min(bytes) AS least, max(bytes) AS greatest, sum(bytes) / sum(packets) AS per_packet
  FROM flows [RANGE '30 seconds']
  GROUP BY proto;

-- Which way does it go through the router?
CREATE QUERY interfaces AS
  SELECT in_if, out_if, sum(packets) AS packets, sum(bytes) AS bytes
  FROM flows [RANGE '30 seconds']
  GROUP BY in_if, out_if;

-- Top talkers: who sends most?
CREATE QUERY talkers AS
  SELECT src, count(*) AS records, sum(packets) AS packets, sum(bytes) AS bytes
  FROM flows [RANGE '1 minute' SLIDE '1 minute']
  GROUP BY src HAVING count(*) >= 20;

-- Who talks to whom?
CREATE QUERY pairs AS
  SELECT src, dst, count(*) AS records, sum(bytes) AS bytes
  FROM flows [RANGE '1 minute']
  GROUP BY src, dst HAVING sum(bytes) > 50000;

-- Which services are used?
CREATE QUERY services AS
  SELECT dport, proto, count(*) AS records, sum(bytes) AS bytes
  FROM flows [RANGE '1 minute']
  WHERE proto IN (6, 17) AND dport < 1024
  GROUP BY dport, proto;

-- Scanned ports: connections that were only opened (SYN and nothing else), by target and port.
CREATE QUERY scanned AS
  SELECT dst, dport, count(*) AS opened, avg(bytes) AS mean
  FROM flows [RANGE '30 seconds']
  WHERE proto = 6 AND flags = 2
  GROUP BY dst, dport HAVING count(*) >= 3;

-- The same traffic by network, three times coarser each time.
CREATE QUERY nets24 AS
  SELECT src/24 AS net, count(*) AS records, sum(bytes) AS bytes
  FROM flows [RANGE '1 minute']
  GROUP BY src/24 HAVING sum(bytes) > 20000;

CREATE QUERY nets16 AS
  SELECT src/16 AS net, dst/16 AS peer, count(*) AS records, sum(bytes) AS bytes
  FROM flows
  GROUP BY ts/5 AS five_minutes, src/16, dst/16;

CREATE QUERY nets8 AS
  SELECT src/8 AS net, count(*) AS records, sum(bytes) AS bytes, max(bytes) AS largest
  FROM flows
  GROUP BY src/8
  EVERY 5 MINUTES;

-- Long flows: the five-tuples with the most records, with their first and last time.
CREATE QUERY long_flows AS
  SELECT src, dst, sport, dport, proto, count(*) AS records, sum(bytes) AS bytes, min(ts) AS first, max(ts) AS last
  FROM flows [RANGE '5 minutes' SLIDE '5 minutes']
  WHERE NOT (proto = 1 OR dport = 53 OR sport = 53)
  GROUP BY src, dst, sport, dport, proto HAVING count(*) >= 200;
