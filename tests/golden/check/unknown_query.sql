CREATE STREAM packets (
  ts TIMESTAMP, seen TIMESTAMP, src INET, dst INET, sport INT, proto TINYINT,
  bytes BIGINT, rate DOUBLE, up BOOLEAN, host STRING
) FROM 'pcap:trace.pcap';

CREATE QUERY q AS
  SELECT sum(n) FROM talkers EVERY 5 MINUTES;
CREATE QUERY talker AS SELECT count(*) AS n FROM packets EVERY 1 MINUTE;
