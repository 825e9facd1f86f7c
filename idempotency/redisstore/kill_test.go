package redisstore_test

const childSocket = "REDISSTORE_TEST_SOCKET"
