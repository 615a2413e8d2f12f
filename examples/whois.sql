-- Traffic by owner of the network: packets of a capture, and a table of ranges of addresses.
--
--   penstock check examples/whois.sql --set capture=trace.pcap --set whois=whois.csv
--   penstock run   examples/whois.sql --set capture=trace.pcap --set whois=whois.csv --output out
--
-- whois.csv has a line for each network, IPv4 or IPv6; its last address belongs to it:
--
--   min_addr,max_addr,name
--   128.32.0.0,128.32.255.255,berkeley.edu
--   128.32.4.0,128.32.4.255,eecs.berkeley.edu
--
-- Networks lie inside each other. With match = 'longest' an address belongs to the smallest one that holds it; without,
-- it would belong to all of them, and be counted for each.

CREATE STREAM packets FROM 'pcap:${capture}' WATERMARK ts DELAY '1 second';

CREATE TABLE whois (min_addr INET, max_addr INET, name STRING) FROM 'csv:${whois}' WITH (match = 'longest');

-- Who sends most?
CREATE QUERY senders AS
  SELECT W.name, count(*) AS packets, sum(P.ip_length) AS bytes
  FROM packets P [RANGE '10 seconds'], whois W
  WHERE P.src >= W.min_addr AND P.src <= W.max_addr
  GROUP BY W.name ORDER BY bytes DESC LIMIT 20;

-- From whom to whom? What belongs to nobody is there, too: as NULL.
CREATE QUERY pairs AS
  SELECT S.name AS sender, D.name AS receiver, count(*) AS packets, sum(P.ip_length) AS bytes
  FROM packets P [RANGE '30 seconds' SLIDE '10 seconds']
  LEFT JOIN whois S ON P.src >= S.min_addr AND P.src <= S.max_addr
  LEFT JOIN whois D ON P.dst >= D.min_addr AND P.dst <= D.max_addr
  GROUP BY S.name, D.name HAVING count(*) > 100;

-- Packets of one organisation, with the network that each came from.
CREATE QUERY berkeley AS
  SELECT P.ts, P.src, P.dst, W.name, W.min_addr, W.max_addr
  FROM packets P [RANGE '5 seconds'], whois W
  WHERE P.src >= W.min_addr AND P.src <= W.max_addr AND W.name LIKE '%berkeley.edu';

-- Which of its own networks does anybody outside talk to, and on which ports?
CREATE QUERY services AS
  SELECT W.name, P.dport, count(*) AS packets, count(DISTINCT P.src) AS sources
  FROM packets P [RANGE '30 seconds'], whois W
  WHERE P.dst >= W.min_addr AND P.dst <= W.max_addr AND W.name LIKE '%berkeley.edu' AND P.proto = 6
  GROUP BY W.name, P.dport HAVING count(*) > 10;
