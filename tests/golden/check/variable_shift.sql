CREATE STREAM ${name} (ts TIMESTAMP, a INT) FROM 'csv:${folder}/a';
CREATE QUERY q AS SELECT b, count(*) FROM ${name} [RANGE ${window}] GROUP BY b;
