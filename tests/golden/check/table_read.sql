CREATE TABLE owners (low INET, high INET, name STRING) FROM 'csv:owners.csv';

CREATE QUERY q AS
  SELECT count(*) FROM owners [RANGE '1 s'];
