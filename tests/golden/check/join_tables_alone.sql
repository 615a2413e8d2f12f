CREATE TABLE owners (low INET, high INET, name STRING) FROM 'csv:owners.csv';
CREATE TABLE hosts (host STRING, owner STRING, level INT) FROM 'csv:hosts.csv';

CREATE QUERY q AS
  SELECT count(*)
  FROM owners O, hosts H
  WHERE O.name = H.owner;
