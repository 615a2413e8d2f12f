CREATE STREAM packets (
  ts TIMESTAMP, src INET, dst INET, sport INT, bytes BIGINT, rate DOUBLE, host STRING
) FROM 'pcap:trace.pcap';

CREATE QUERY q AS
  SELECT count(*)
  FROM packets A [RANGE '1 s'], packets B [RANGE '1 s'], packets C [RANGE '1 s'],
    packets D [RANGE '1 s'], packets E [RANGE '1 s']
  WHERE A.src = B.src AND B.src = C.src AND C.src = D.src AND D.src = E.src;
