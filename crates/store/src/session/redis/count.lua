-- Returns the number of sessions in the shard.
return redis.call('ZCOUNT', living, '(' .. digits(now), '+inf')
