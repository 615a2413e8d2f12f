CREATE STREAM bids (ts TIMESTAMP, auction BIGINT, bidder BIGINT, price BIGINT, host STRING)
  FROM 'parquet:bids.parquet' WATERMARK ts DELAY '1 second';
CREATE STREAM auctions (ts TIMESTAMP, auction BIGINT, seller BIGINT, price BIGINT)
  FROM 'parquet:auctions.parquet' WATERMARK ts DELAY '1 second';

CREATE QUERY q AS
  SELECT tb, count(*) FROM auctions A
  WHERE EXISTS (SELECT 1 FROM bids B [RANGE '5 minutes'] WHERE B.auction = A.auction) GROUP BY ts/5 AS tb;
