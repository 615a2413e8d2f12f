CREATE STREAM packets (ts TIMESTAMP, src INET) FROM 'replay:pcap:trace.pcap' WITH (speed = 3);

CREATE QUERY q AS SELECT src, count(*) AS n FROM packets [RANGE '5 minutes'] GROUP BY src LIMIT DELAY TO '1 second';
