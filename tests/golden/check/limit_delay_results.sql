CREATE STREAM packets (ts TIMESTAMP, src INET, dst INET, proto TINYINT, bytes BIGINT, weight INT) FROM 'pcap:trace.pcap'
  WATERMARK ts DELAY '2 seconds';

CREATE QUERY minutes AS SELECT src, count(*) AS n FROM packets [RANGE '1 minute'] GROUP BY src;
CREATE QUERY q AS SELECT src, sum(n) AS n FROM minutes [RANGE '5 minutes'] GROUP BY src LIMIT DELAY TO '5 seconds';
