-- A dozen monitoring queries over captured packets: one scan of the capture, one Spark streaming query.
--
--   penstock check examples/packets.sql --set capture=trace.pcap
--   penstock run   examples/packets.sql --set capture=trace.pcap --output out
--
-- `pcap:` reads pcap and pcapng, plain or compressed, a file, a folder or a glob, and knows its columns (ts, length,
-- src, dst, proto, sport, dport, tcp_flags, ip_length, ...). What a packet does not have is NULL: ports of ICMP,
-- addresses of ARP. Bytes are those of IP packets (ip_length), as flow collectors count them; `length` is the frame.

CREATE STREAM packets FROM 'pcap:${capture}' WATERMARK ts DELAY '1 second';

-- What kind of traffic is it?
CREATE QUERY protocols AS
  SELECT version, proto, count(*) AS packets, sum(ip_length) AS bytes
  FROM packets [RANGE '10 seconds']
  GROUP BY version, proto;

-- How large are frames? Classes of 64 bytes.
CREATE QUERY sizes AS
  SELECT length - length % 64 AS at_least, count(*) AS packets, sum(length) AS bytes
  FROM packets [RANGE '10 seconds']
  GROUP BY 1;

-- Which flags do TCP packets carry? FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, and two about congestion.
CREATE QUERY flags AS
  SELECT tcp_flags, count(*) AS packets
  FROM packets [RANGE '10 seconds']
  WHERE proto = 6
  GROUP BY tcp_flags;

-- Top talkers and listeners: the ten with most bytes in each minute.
CREATE QUERY talkers AS
  SELECT src, count(*) AS packets, sum(ip_length) AS bytes
  FROM packets [RANGE '1 minute']
  WHERE version IS NOT NULL
  GROUP BY src ORDER BY bytes DESC LIMIT 10;

CREATE QUERY listeners AS
  SELECT dst, count(*) AS packets, sum(ip_length) AS bytes
  FROM packets [RANGE '1 minute']
  WHERE version IS NOT NULL
  GROUP BY dst ORDER BY bytes DESC LIMIT 10;

-- Scanned ports: SYN and nothing else (whatever is said of congestion), by target and port; told every 10 seconds
-- about the last minute.
CREATE QUERY scanned AS
  SELECT dst, dport, count(*) AS opened
  FROM packets [RANGE '1 minute' SLIDE '10 seconds']
  WHERE proto = 6 AND tcp_flags % 64 = 2
  GROUP BY dst, dport HAVING count(*) >= 3;

-- By network.
CREATE QUERY nets24 AS
  SELECT src/24 AS net, count(*) AS packets, sum(ip_length) AS bytes
  FROM packets [RANGE '1 minute']
  GROUP BY src/24;

CREATE QUERY nets16 AS
  SELECT src/16 AS net, dst/16 AS peer, count(*) AS packets, sum(ip_length) AS bytes
  FROM packets [RANGE '5 minutes']
  GROUP BY src/16, dst/16;

-- Who talks to whom, and about what?
CREATE QUERY pairs AS
  SELECT src, dst, count(*) AS packets, sum(ip_length) AS bytes
  FROM packets [RANGE '1 minute']
  GROUP BY src, dst;

CREATE QUERY services AS
  SELECT proto, least(sport, dport) AS port, count(*) AS packets, sum(ip_length) AS bytes
  FROM packets [RANGE '5 minutes']
  WHERE sport IS NOT NULL
  GROUP BY 1, 2;

-- Flows, with their first and last time, and how often they were opened and closed.
CREATE QUERY flows AS
  SELECT src, dst, sport, dport, proto, count(*) AS packets, sum(ip_length) AS bytes, min(ts) AS first, max(ts) AS last,
         count(*) FILTER (WHERE tcp_flags % 64 = 2) AS opened, count(*) FILTER (WHERE tcp_flags % 2 = 1) AS closed
  FROM packets [RANGE '5 minutes']
  WHERE version IS NOT NULL
  GROUP BY src, dst, sport, dport, proto;

-- Something is wrong: packets with a time to live about to end, and what routers say of them.
CREATE QUERY troubles AS
  SELECT src, icmp_type, icmp_code, count(*) AS packets
  FROM packets [RANGE '1 minute']
  WHERE ttl <= 1 OR icmp_type IN (3, 11)
  GROUP BY src, icmp_type, icmp_code;
