CREATE STREAM r
  FROM 'missing:a.pcap';
CREATE QUERY q AS SELECT count(*) FROM r [RANGE '1 s'];
