CREATE STREAM packets (ts TIMESTAMP, src INET) FROM 'replay:pcap:trace.pcap' WITH (speed = 3)
  WATERMARK ts DELAY '2 seconds';

CREATE QUERY q AS SELECT src, count(*) AS n FROM packets [RANGE '5 minutes'] GROUP BY src LIMIT DELAY TO '500 ms';
