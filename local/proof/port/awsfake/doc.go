// Package awsfake has in-process services of AWS for the tests of their
// adapters and for simulations: DynamoDB, Step Functions, EventBridge Scheduler, and IAM in front
// of them.
//
//	clk := clock.NewVirtual(start)
//	db := awsfake.NewDynamoDB(awsfake.DynamoDBConfig{Clock: clk, Seed: 1, Lag: time.Second, Stale: 0.3})
//	err := awsfake.CreateTable(ctx, db.AWS(), "sortie")
//	store, err := dynamo.Open(db.AWS(), dynamo.Config{Table: "sortie", Clock: clk})
//
// A fake is the HTTP client of the SDK. Requests and responses are those of the API, without
// sockets and goroutines. It implements the operations and expressions that the adapters use.
// It rejects every other operation, field and expression with the error of the service, so that
// it never answers a request that it does not support.
//
// DynamoDB.Direct returns a client that calls the fake without encoding, for tests with many
// calls.
//
// DynamoDB stores the items itself. StepFunctions has the names, errors, quotas and limits of
// the service. Another port.Executions, such as the local engine, executes the states:
//
//	states, err := awsfake.NewStepFunctions(awsfake.StepFunctionsConfig{
//		Clock: clk, Executions: engine, Definition: machine, Quotas: awsfake.Quotas(),
//	})
//	executions, err := stepfunctions.New(states.AWS(), awsfake.StateMachine)
//
// # Time and chance
//
// A fake uses the clock of its configuration and no randomness except its seed. The outcome of
// a call depends on the seed, the operation, the item, and the number of earlier calls with
// that operation and item. It does not depend on the order of concurrent calls for different
// items.
//
// # Permissions
//
// IAM decides which calls an identity may make. It evaluates the identity policies of roles:
// actions and resources with wildcards, string and ARN conditions on the condition keys of
// these calls, and deny statements. It rejects roles that it cannot evaluate. It has no
// resource policies, permission boundaries or session policies.
//
//	iam, err := awsfake.NewIAM(map[string]awsfake.Role{"metrics": role}, awsfake.StateMachine)
//	cfg.HTTPClient = iam.Guard(db)
//
// # Faults
//
// A Plan decides the fate of each call. A call that is Lost or Unsure fails alternately with a
// broken connection and with the service's internal error.
//
// DynamoDBConfig.Partition limits the throughput of each partition key of a table. Requests
// above the limit are throttled.
package awsfake
