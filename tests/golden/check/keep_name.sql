CREATE STREAM packets (ts TIMESTAMP, src INET, dst INET, proto TINYINT, bytes BIGINT, weight INT) FROM 'pcap:trace.pcap'
  WATERMARK ts DELAY '2 seconds'
  ON OVERLOAD KEEP RESERVOIR (n);

CREATE QUERY q AS SELECT src, count(*) AS n FROM packets [RANGE '5 minutes'] GROUP BY src LIMIT DELAY TO '5 seconds';
