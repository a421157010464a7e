// Package awsfake has in-process services of AWS for the tests of their
// adapters and for simulations: DynamoDB, Step Functions, EventBridge Scheduler, and IAM in front
// of them.
//
//	clk := clock.NewVirtual(start)
//	db := awsfake.NewDynamoDB(awsfake.DynamoDBConfig{Clock: clk, Seed: 1, Lag: time.Second, Stale: 0.3})
//	err := awsfake.CreateTable(ctx, db.AWS(), "sortie")
//	store, err := dynamo.Open(db.AWS(), dynamo.Config{Table: "sortie", Clock: clk})
//
// A fake is the HTTP client of the SDK: requests and responses are those of the
// API, without sockets and goroutines. It implements the operations and
// expressions that the adapters use, and refuses every other operation, field
// and expression with the error of the service, so that it cannot answer a
// request that it does not understand.
//
// DynamoDB.Direct is a client that calls the fake without encoding, for many calls.
//
// DynamoDB stores items itself. StepFunctions has the names, errors, quotas and
// limits of the service and leaves the execution of states to another
// port.Executions, such as the local engine:
//
//	states, err := awsfake.NewStepFunctions(awsfake.StepFunctionsConfig{
//		Clock: clk, Executions: engine, Definition: machine, Quotas: awsfake.Quotas(),
//	})
//	executions, err := stepfunctions.New(states.AWS(), awsfake.StateMachine)
//
// # Time and chance
//
// A fake has the clock of its configuration and no random numbers besides the
// seed. What happens to a call depends on the seed, the operation, the item,
// and on how often they were combined before. It does not depend on the order
// of concurrent calls for different items.
//
// # Permissions
//
// IAM decides which calls an identity may make. It evaluates the identity policies of roles:
// actions and resources with wildcards, string and ARN conditions on the condition keys of
// these calls, and deny statements. It refuses roles that it cannot evaluate. Policies of
// resources, boundaries and sessions do not exist.
//
//	iam, err := awsfake.NewIAM(map[string]awsfake.Role{"metrics": role}, awsfake.StateMachine)
//	cfg.HTTPClient = iam.Guard(db)
//
// # Faults
//
// A Plan decides the fate of each call. A call that is Lost or Unsure fails
// with a broken connection or with the service's internal error, by turns.
//
// DynamoDBConfig.Partition limits what each partition key of a table takes in a second; what is
// beyond is throttled.
package awsfake
