-- Returns whether a session exists, and leaves its expiry as it is.
return { redis.call('EXISTS', KEYS[1]) == 1 and 'ok' or 'none' }
