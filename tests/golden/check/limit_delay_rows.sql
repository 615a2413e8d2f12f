CREATE STREAM packets (ts TIMESTAMP, src INET, dst INET, proto TINYINT, bytes BIGINT, weight INT) FROM 'pcap:trace.pcap'
  WATERMARK ts DELAY '2 seconds';

CREATE QUERY q AS
  SELECT src, count(*) AS n FROM packets [ROWS 1000]
  GROUP BY src LIMIT DELAY TO '5 seconds';
