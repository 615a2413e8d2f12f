CREATE STREAM packets (ts TIMESTAMP, src INET, dst INET, proto TINYINT, bytes BIGINT, weight INT) FROM 'pcap:trace.pcap'
  WATERMARK ts DELAY '2 seconds';

CREATE QUERY q AS
  SELECT count(*) AS sources
  FROM (SELECT src FROM packets [RANGE '1 minute'] GROUP BY src LIMIT DELAY TO '5 seconds') AS s [RANGE '1 minute'];
