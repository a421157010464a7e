// Package load puts a load on the deployed system, and finds what limits it.
//
// The use cases behind their HTTP handlers, the state machine on its interpreter, the adapters of
// DynamoDB and Step Functions, and the fakes of both services run in one bubble of
// testing/synctest, whose clock advances only while every goroutine waits. So a load of minutes
// is exact, whatever the machine.
//
//	clients of the tenants ──► functions ──► use cases ──► DynamoDB, units per partition key
//	          machines ──started, heartbeats, completed──┘       │
//	                         state machine ◄── Step Functions, quotas of its calls
//
// The model has the limits of the services: the write and read units of a partition key, the
// quotas of Step Functions in most regions, 1,000 concurrent functions, cold starts, and the
// delays of calls. It has no limit of machines a second, because that of a platform is its own:
// Fly creates one a second per app. It does not have KMS, the relay of events, which package
// relays measures, the bucket, and API Gateway, whose quota of 10,000 requests a second is above
// every load here.
package load
