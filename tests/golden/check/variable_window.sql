CREATE STREAM ${name} (ts TIMESTAMP, a INT) FROM 'csv:${folder}/a';
CREATE QUERY q AS SELECT a, count(*) FROM ${name} [RANGE ${bad}] GROUP BY a;
