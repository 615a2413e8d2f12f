CREATE STREAM bids (ts TIMESTAMP, auction BIGINT, bidder BIGINT, price BIGINT, host STRING)
  FROM 'parquet:bids.parquet' WATERMARK ts DELAY '1 second';
CREATE STREAM auctions (ts TIMESTAMP, auction BIGINT, seller BIGINT, price BIGINT)
  FROM 'parquet:auctions.parquet' WATERMARK ts DELAY '1 second';

CREATE QUERY q AS
  SELECT count(*) FROM auctions A [RANGE '1 minute'] WHERE A.price > (SELECT price FROM bids [RANGE '1 minute']);
