package awsfake_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/smithy-go"

	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

const tableARN = "arn:aws:dynamodb:us-east-1:123456789012:table/sortie"

// allow returns a statement that allows actions on a resource.
func allow(resource string, actions ...string) awsfake.Statement {
	return awsfake.Statement{Effect: "Allow", Actions: actions, Resources: []string{resource}}
}

// under adds a condition on the partition keys to the statement.
func under(s awsfake.Statement, operator string, patterns ...string) awsfake.Statement {
	s.Conditions = map[string]map[string][]string{operator: {"dynamodb:LeadingKeys": patterns}}
	return s
}

// guarded returns an SDK configuration whose calls have the role, and the IAM.
func guarded(t *testing.T, role ...awsfake.Statement) (aws.Config, *awsfake.IAM) {
	t.Helper()
	iam, err := awsfake.NewIAM(map[string]awsfake.Role{"function": role}, awsfake.StateMachine)
	if err != nil {
		t.Fatal(err)
	}
	db := awsfake.NewDynamoDB(awsfake.DynamoDBConfig{Clock: clock.System{}})
	if err := awsfake.CreateTable(t.Context(), db.AWS(), "sortie"); err != nil {
		t.Fatal(err)
	}
	return aws.Config{
		Region: awsfake.Region, BaseEndpoint: aws.String("http://aws.invalid"), HTTPClient: iam.Guard(db), Retryer: func() aws.Retryer { return aws.NopRetryer{} },
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "function", SecretAccessKey: "secret"}, nil
		}),
	}, iam
}

// denied reports whether err is the error of a call that IAM has denied.
func denied(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && api.ErrorCode() == "AccessDeniedException"
}

func keyOf(partition string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: partition}, "sk": &types.AttributeValueMemberS{Value: "x"}}
}

// calls has calls for the table by name.
var calls = map[string]func(ctx context.Context, c *dynamodb.Client) error{
	"get": func(ctx context.Context, c *dynamodb.Client) error {
		_, err := c.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("sortie"), Key: keyOf("#a#1")})
		return err
	},
	"batch": func(ctx context.Context, c *dynamodb.Client) error {
		_, err := c.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
			"sortie": {Keys: []map[string]types.AttributeValue{keyOf("#a#1"), keyOf("#b#1")}},
		}})
		return err
	},
	"query": func(ctx context.Context, c *dynamodb.Client) error {
		_, err := c.Query(ctx, queryOf("", "pk", "#a#1"))
		return err
	},
	"index": func(ctx context.Context, c *dynamodb.Client) error {
		_, err := c.Query(ctx, queryOf("list", "list", "#a#1"))
		return err
	},
	"scan": func(ctx context.Context, c *dynamodb.Client) error {
		_, err := c.Scan(ctx, &dynamodb.ScanInput{TableName: aws.String("sortie"), IndexName: aws.String("due")})
		return err
	},
	"put": func(ctx context.Context, c *dynamodb.Client) error {
		_, err := c.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("sortie"), Item: keyOf("#a#1")})
		return err
	},
	"transaction": func(ctx context.Context, c *dynamodb.Client) error {
		_, err := c.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{TableName: aws.String("sortie"), Item: keyOf("#a#1")}},
			{Delete: &types.Delete{TableName: aws.String("sortie"), Key: keyOf("#b#1")}},
		}})
		return err
	},
}

func queryOf(index, key, value string) *dynamodb.QueryInput {
	in := &dynamodb.QueryInput{
		TableName: aws.String("sortie"), KeyConditionExpression: aws.String("#k = :v"), ExpressionAttributeNames: map[string]string{"#k": key},
		ExpressionAttributeValues: map[string]types.AttributeValue{":v": &types.AttributeValueMemberS{Value: value}},
	}
	if index != "" {
		in.IndexName = &index
	}
	return in
}

func TestRoleDecidesAboutTheTable(t *testing.T) {
	t.Parallel()
	everything := allow("*", "dynamodb:*")
	deny := func(s awsfake.Statement) awsfake.Statement {
		s.Effect = "Deny"
		return s
	}
	for name, row := range map[string]struct {
		role []awsfake.Statement
		may  string
	}{
		"nothing":               {nil, ""},
		"another table":         {[]awsfake.Statement{allow(tableARN+"s", "dynamodb:*")}, ""},
		"exact":                 {[]awsfake.Statement{allow(tableARN, "dynamodb:GetItem")}, "get"},
		"case of actions":       {[]awsfake.Statement{allow(tableARN, "DynamoDB:getitem")}, "get"},
		"table without indexes": {[]awsfake.Statement{allow(tableARN, "dynamodb:*")}, "batch get put query transaction"},
		"indexes alone":         {[]awsfake.Statement{allow(tableARN+"/index/*", "dynamodb:*")}, "index scan"},
		"one index":             {[]awsfake.Statement{allow(tableARN+"/index/list", "dynamodb:Query")}, "index"},
		"single character":      {[]awsfake.Statement{allow(tableARN+"/index/d?e", "dynamodb:Scan")}, "scan"},
		"part of a transaction": {[]awsfake.Statement{allow(tableARN, "dynamodb:PutItem")}, "put"},
		"transaction":           {[]awsfake.Statement{allow(tableARN, "dynamodb:PutItem"), allow(tableARN, "dynamodb:DeleteItem")}, "put transaction"},
		"partitions of all":     {[]awsfake.Statement{under(everything, "ForAllValues:StringLike", "#a#*")}, "get index put query scan"},
		"partitions of both":    {[]awsfake.Statement{under(everything, "ForAllValues:StringLike", "#a#*", "#b#*")}, "batch get index put query scan transaction"},
		"partitions of any":     {[]awsfake.Statement{under(everything, "ForAnyValue:StringLike", "#b#*")}, "batch transaction"},
		"denied action":         {[]awsfake.Statement{everything, deny(allow(tableARN, "dynamodb:PutItem"))}, "batch get index query scan"},
		"denied partition":      {[]awsfake.Statement{everything, deny(under(allow("*", "*"), "ForAnyValue:StringLike", "#b#*"))}, "get index put query scan"},
		"denied other partition": {
			[]awsfake.Statement{everything, deny(under(allow("*", "*"), "ForAnyValue:StringNotLike", "#a#*"))}, "get index put query scan",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, _ := guarded(t, row.role...)
			client := dynamodb.NewFromConfig(cfg)
			var may []string
			for call, do := range calls {
				err := do(t.Context(), client)
				if err == nil {
					may = append(may, call)
				} else if !denied(err) {
					t.Errorf("%s: %v", call, err)
				}
			}
			slices.Sort(may)
			if got := strings.Join(may, " "); got != row.may {
				t.Errorf("got permission for %q, want %q", got, row.may)
			}
		})
	}
}

func TestIAMRemembersWhatWasDeniedAndUsed(t *testing.T) {
	t.Parallel()
	cfg, iam := guarded(t, allow(tableARN, "dynamodb:GetItem", "dynamodb:Query"))
	client := dynamodb.NewFromConfig(cfg)
	for _, call := range []string{"get", "put", "put"} {
		if err := calls[call](t.Context(), client); err != nil && !denied(err) {
			t.Fatal(err)
		}
	}
	want := awsfake.Denied{Identity: "function", Action: "dynamodb:PutItem", Resource: tableARN, Why: "no statement allows it", Count: 2}
	if got := iam.Denied(); len(got) != 1 || got[0] != want {
		t.Errorf("got %v, want %v", got, want)
	}
	unused := []awsfake.Permission{{Identity: "function", Action: "dynamodb:Query", Resource: tableARN}}
	if got := iam.Unused(); !slices.Equal(got, unused) {
		t.Errorf("got unused %v, want %v", got, unused)
	}
	cfg.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "stranger", SecretAccessKey: "secret"}, nil
	})
	if err := calls["get"](t.Context(), dynamodb.NewFromConfig(cfg)); !denied(err) {
		t.Errorf("identity without a role: got %v, want a refusal", err)
	}
}

// TestCallsNeedTheirPermissions checks the permissions that the calls of services need.
func TestCallsNeedTheirPermissions(t *testing.T) {
	t.Parallel()
	cfg, iam := guarded(t)
	states, schedules := sfn.NewFromConfig(cfg), scheduler.NewFromConfig(cfg)
	ctx := t.Context()
	_, started := states.StartExecution(ctx, &sfn.StartExecutionInput{StateMachineArn: aws.String(awsfake.StateMachine + ":live"), Input: aws.String("{}")})
	_, stopped := states.StopExecution(ctx, &sfn.StopExecutionInput{ExecutionArn: aws.String("arn:aws:states:us-east-1:123456789012:execution:run:one")})
	_, completed := states.SendTaskSuccess(ctx, &sfn.SendTaskSuccessInput{TaskToken: aws.String("t"), Output: aws.String("{}")})
	_, removed := schedules.DeleteSchedule(ctx, &scheduler.DeleteScheduleInput{Name: aws.String("one"), GroupName: aws.String("jobs")})
	for i, err := range []error{started, stopped, completed, removed} {
		if !denied(err) {
			t.Errorf("call %d: got %v, want a refusal", i, err)
		}
	}
	var got []string
	for _, d := range iam.Denied() {
		got = append(got, d.Action+" "+d.Resource)
	}
	want := []string{
		"scheduler:DeleteSchedule arn:aws:scheduler:us-east-1:123456789012:schedule/jobs/one",
		"states:SendTaskSuccess " + awsfake.StateMachine,
		"states:StartExecution " + awsfake.StateMachine,
		"states:StopExecution arn:aws:states:us-east-1:123456789012:execution:run:one",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestScheduleNeedsItsRole checks that an identity cannot store a schedule with a role that it
// may not pass.
func TestScheduleNeedsItsRole(t *testing.T) {
	t.Parallel()
	cfg, iam := guarded(t, allow("*", "scheduler:*"))
	_, err := scheduler.NewFromConfig(cfg).CreateSchedule(t.Context(), &scheduler.CreateScheduleInput{
		Name: aws.String("one"), GroupName: aws.String("jobs"), ScheduleExpression: aws.String("at(2026-01-02T03:04:05)"),
		FlexibleTimeWindow: &schedulertypes.FlexibleTimeWindow{Mode: schedulertypes.FlexibleTimeWindowModeOff},
		Target:             &schedulertypes.Target{Arn: aws.String("arn:aws:lambda:::function:fire"), RoleArn: aws.String("arn:aws:iam::123456789012:role/wake")},
	})
	if got := iam.Denied(); !denied(err) || len(got) != 1 || got[0].Action != "iam:PassRole" || got[0].Resource != "arn:aws:iam::123456789012:role/wake" {
		t.Errorf("got %v and %v, want a refusal for iam:PassRole", err, got)
	}
}

func TestRoleThatTheFakeCannotEvaluateIsRefused(t *testing.T) {
	t.Parallel()
	unknownKey := allow("*", "*")
	unknownKey.Conditions = map[string]map[string][]string{"StringEquals": {"aws:SourceIp": {"x"}}}
	for name, s := range map[string]awsfake.Statement{
		"operator": under(allow("*", "*"), "NumericLessThan", "1"), "quantifier": under(allow("*", "*"), "ForSomeValues:StringLike", "1"),
		"key": unknownKey, "effect": {Effect: "allow", Actions: []string{"*"}, Resources: []string{"*"}}, "empty": {Effect: "Allow"},
	} {
		if _, err := awsfake.NewIAM(map[string]awsfake.Role{"function": {s}}, ""); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}
