-- An auction house: bids joined with the auctions that they are for, and with who sells and who bids.
--
--   penstock generate auction -o house --rows 5M
--   penstock check examples/auction.sql --set data=house
--   penstock run   examples/auction.sql --set data=house --output out
--
-- Five million bids are five and a half hours. A window of a join holds what the windows of its streams hold at its
-- end: all auctions so far, and the bids of the last hour.

CREATE STREAM Bid FROM 'parquet:${data}/bids.parquet' WATERMARK ts DELAY '1 second';
CREATE STREAM Auction FROM 'parquet:${data}/auctions.parquet' WATERMARK ts DELAY '1 second';
CREATE TABLE Person FROM 'parquet:${data}/persons.parquet';

-- How many bids have auctions of sellers in Vermont had within the last hour? Anew every minute.
CREATE QUERY vermont AS
  SELECT A.auctionID, COUNT(B.*) AS bids
  FROM Auction AS A [WINDOW UNTIL NOW], Bid AS B [WINDOW 1 HOUR], Person AS P
  WHERE A.auctionID = B.auctionID AND A.sellerID = P.personID AND P.state = 'VT'
  GROUP BY A.auctionID EVERY 1 MINUTE;

-- Hot auctions: what they began at, and what is bid for them now.
CREATE QUERY hot AS
  SELECT A.auctionID, A.startPrice, count(*) AS bids, avg(B.bidPrice) AS mean, max(B.bidPrice) AS greatest
  FROM Auction A [WINDOW UNTIL NOW], Bid B [WINDOW 1 HOUR]
  WHERE A.auctionID = B.auctionID
  GROUP BY A.auctionID, A.startPrice HAVING count(*) > 1000
  ORDER BY bids DESC LIMIT 20 EVERY 10 MINUTES;

-- Hot sellers, with name and state: of auctions opened within the last hour, and bids of the last ten minutes.
CREATE QUERY sellers AS
  SELECT A.sellerID, P.name, P.state, count(*) AS bids, max(B.bidPrice) AS greatest
  FROM Auction A [RANGE '1 hour' SLIDE '10 minutes'], Bid B [RANGE '10 minutes'], Person P
  WHERE A.auctionID = B.auctionID AND A.sellerID = P.personID
  GROUP BY A.sellerID, P.name, P.state HAVING count(*) > 100;

-- Bids by the state of the seller: how much do they go beyond the price that the seller asked for?
CREATE QUERY states AS
  SELECT P.state, count(*) AS bids, avg(A.startPrice) AS asked, avg(B.bidPrice) AS bid
  FROM Auction A [WINDOW UNTIL NOW], Bid B [WINDOW 10 MINUTES], Person P
  WHERE A.auctionID = B.auctionID AND A.sellerID = P.personID
  GROUP BY P.state EVERY 10 MINUTES;

-- Who buys from whom? One table twice: the bidder is one person, the seller another.
CREATE QUERY trade AS
  SELECT S.state AS seller, T.state AS bidder, count(*) AS bids, sum(B.bidPrice) AS total
  FROM Auction A [WINDOW UNTIL NOW], Bid B [WINDOW 1 HOUR], Person S, Person T
  WHERE A.auctionID = B.auctionID AND A.sellerID = S.personID AND B.bidderID = T.personID
  GROUP BY S.state, T.state EVERY 1 HOUR;

-- A stream with a table alone is no join at run time: each bid has the state of its bidder.
CREATE QUERY bidders AS
  SELECT P.state, count(*) AS bids, avg(B.bidPrice) AS mean, count(DISTINCT B.bidderID) AS persons
  FROM Bid B [RANGE '10 minutes'], Person P
  WHERE B.bidderID = P.personID
  GROUP BY P.state;

-- Unwanted: auctions opened within the last hour that nobody has bid for so far, by the state of the seller.
CREATE QUERY unwanted AS
  SELECT P.state, count(*) AS auctions, avg(A.startPrice) AS asked
  FROM Auction A [RANGE '1 hour' SLIDE '10 minutes'], Person P
  WHERE A.sellerID = P.personID
    AND NOT EXISTS (SELECT 1 FROM Bid B [WINDOW UNTIL NOW] WHERE B.auctionID = A.auctionID)
  GROUP BY P.state;
