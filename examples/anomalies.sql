-- What every operator asks on the first day: scans, floods, odd sizes, top talkers. Over captured packets.
--
--   penstock check examples/anomalies.sql --set capture=trace.pcap
--   penstock run   examples/anomalies.sql --set capture=trace.pcap --output out
--
-- docs/anomalies.md tells what each query looks for, and what it found in two captures. Distinct counts, percentiles
-- and frequent values are kept as finer relations, which queries share.

CREATE STREAM packets FROM 'pcap:${capture}' WATERMARK ts DELAY '1 second';

-- Floods: many sources, one destination. The entropy of sources jumps, that of destinations falls.
CREATE QUERY floods AS
  SELECT count(*) AS packets, count(*) FILTER (WHERE tcp_flags = 2) AS opened,
         entropy(src) AS source_bits, entropy(dst) AS destination_bits,
         approx_count_distinct(src) AS sources, approx_count_distinct(dst) AS destinations
  FROM packets [RANGE '1 second'];

-- Who is flooded? Destinations that more than a thousand sources talk to within ten seconds.
CREATE QUERY victims AS
  SELECT dst, count(DISTINCT src) AS sources, count(*) AS packets, entropy(src) AS source_bits
  FROM packets [RANGE '10 seconds']
  GROUP BY dst HAVING count(DISTINCT src) > 1000;

-- Scans of ports: a source that tries many ports of one host.
CREATE QUERY port_scans AS
  SELECT src, dst, count(DISTINCT dport) AS ports
  FROM packets [RANGE '10 seconds' SLIDE '5 seconds']
  WHERE proto = 6
  GROUP BY src, dst HAVING count(DISTINCT dport) > 20;

-- Scans of hosts: a source that tries many hosts.
CREATE QUERY host_scans AS
  SELECT src, approx_count_distinct(dst) AS hosts, count(*) AS packets
  FROM packets [RANGE '10 seconds' SLIDE '5 seconds']
  GROUP BY src HAVING approx_count_distinct(dst) > 50;

-- Sizes: amplified answers show in the upper percentiles long before they show in the mean.
CREATE QUERY sizes AS
  SELECT proto, avg(ip_length) AS mean, median(ip_length) AS half, percentile(ip_length, 0.99) AS p99
  FROM packets [RANGE '10 seconds']
  GROUP BY proto;

-- Top talkers: sources of at least 1 % of the packets, with bounds on their counts.
CREATE QUERY talkers AS
  SELECT approx_frequent(src, 0.01) AS talker, count(*) AS packets
  FROM packets [RANGE '10 seconds']
  ORDER BY count_talker DESC LIMIT 10;

-- Top networks, exactly.
CREATE QUERY networks AS
  SELECT frequent(src/24, 0.02) AS network
  FROM packets [RANGE '10 seconds']
  ORDER BY count_network DESC LIMIT 10;
