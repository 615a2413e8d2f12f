CREATE STREAM packets (ts TIMESTAMP, src INET, dst INET, proto TINYINT, bytes BIGINT, weight INT) FROM 'pcap:trace.pcap'
  WATERMARK ts DELAY '2 seconds';

CREATE QUERY q AS
  SELECT P.src, count(*) AS n FROM packets P [RANGE '1 minute']
  WHERE EXISTS (SELECT 1 FROM packets A [RANGE '1 minute'] WHERE A.dst = P.src)
  GROUP BY P.src LIMIT DELAY TO '5 seconds';
