package stack_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/infra/stack"
	"github.com/sortie-dev/sortie/infra/template"
)

// reasons say why something is wider than one resource, by a part of the
// resource and the action.
var reasons = []struct{ resource, action, why string }{
	{":execution:sortie-dev-run:*", "states:", "executions are named after runs, which come and go"},
	{"/stream/*", "dynamodb:ListStreams", "the permission knows no single stream, only those of the one table"},
	{".Arn}/exports/*", "s3:", "the objects of all tasks"},
	{".Arn}/*/logs/*", "s3:", "the logs of all tenants"},
	{"", "logs:CreateLogDelivery", "AWS: the delivery of logs knows no resource"},
	{"", "logs:GetLogDelivery", "AWS: the delivery of logs knows no resource"},
	{"", "logs:UpdateLogDelivery", "AWS: the delivery of logs knows no resource"},
	{"", "logs:DeleteLogDelivery", "AWS: the delivery of logs knows no resource"},
	{"", "logs:ListLogDeliveries", "AWS: the delivery of logs knows no resource"},
	{"", "logs:PutResourcePolicy", "AWS: the delivery of logs knows no resource"},
	{"", "logs:DescribeResourcePolicies", "AWS: the delivery of logs knows no resource"},
	{"", "logs:DescribeLogGroups", "AWS: the delivery of logs knows no resource"},
	{"", "xray:PutTraceSegments", "AWS: X-Ray knows no resource"},
	{"", "xray:PutTelemetryRecords", "AWS: X-Ray knows no resource"},
}

// allowed is one statement of a policy.
type allowed struct {
	where              string
	actions, resources []string
}

func asList(value any) []any {
	if many, ok := value.([]any); ok {
		return many
	}
	return []any{value}
}

// statements are all that roles and users may do.
func statements(t template.Template) []allowed {
	var all []allowed
	for _, kind := range []string{"IAM::Role", "IAM::User", "IAM::Policy", "IAM::ManagedPolicy"} {
		for _, r := range t.Of(kind) {
			documents := []any{r.At("PolicyDocument")}
			policies, _ := r.At("Policies").([]any)
			for _, p := range policies {
				documents = append(documents, p.(map[string]any)["PolicyDocument"])
			}
			for _, document := range documents {
				if document == nil {
					continue
				}
				for _, s := range asList(document.(map[string]any)["Statement"]) {
					one := allowed{where: r.ID}
					for _, action := range asList(s.(map[string]any)["Action"]) {
						one.actions = append(one.actions, template.Flat(action))
					}
					for _, on := range asList(s.(map[string]any)["Resource"]) {
						one.resources = append(one.resources, template.Flat(on))
					}
					all = append(all, one)
				}
			}
		}
	}
	return all
}

func TestNothingIsWiderThanItHasAReasonFor(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]template.Template{"the defaults": deployed(t), "everything": everything(t)} {
		for _, s := range statements(made) {
			for _, action := range s.actions {
				if strings.Contains(action, "*") {
					t.Errorf("%s: %s may do %s", name, s.where, action)
				}
				for _, on := range s.resources {
					if strings.Contains(on, "*") && !hasReason(action, on) {
						t.Errorf("%s: %s may do %s on %s, and no reason is given", name, s.where, action, on)
					}
				}
			}
		}
	}
}

func hasReason(action, on string) bool {
	for _, r := range reasons {
		if strings.HasPrefix(action, r.action) && (on == "*" && r.resource == "" || r.resource != "" && strings.Contains(on, r.resource)) {
			return true
		}
	}
	return false
}

// TestOneManagedPolicy: what AWS keeps may change, so only the one that API
// Gateway insists on is used, for its logs.
func TestOneManagedPolicy(t *testing.T) {
	t.Parallel()
	for _, r := range everything(t).Of("IAM::Role") {
		managed := r.Text("ManagedPolicyArns")
		if managed != "" && !strings.Contains(managed, "AmazonAPIGatewayPushToCloudWatchLogs") {
			t.Errorf("%s has %s", r.ID, managed)
		}
	}
}

func TestEveryFunctionHasARoleOfItsOwn(t *testing.T) {
	t.Parallel()
	made := deployed(t)
	roles := map[string]string{}
	for _, name := range stack.Functions() {
		f := functionOf(t, made, name)
		role := f.Text("Role")
		if role == "" || roles[role] != "" {
			t.Errorf("%s and %q have the role %s", name, roles[role], role)
		}
		roles[role] = name
	}
	if n := len(made.Of("Lambda::Function")); n != len(stack.Functions()) {
		t.Errorf("the template has %d functions, %d are known", n, len(stack.Functions()))
	}
}

func functionOf(tb testing.TB, made template.Template, name string) *template.Resource {
	tb.Helper()
	f := made.Function(name)
	if f == nil {
		tb.Fatalf("there is no function %s", name)
	}
	return f
}

// TestTheWorkerOnlyWrites: whoever has its key can neither read nor list, nor
// reach what is served.
func TestTheWorkerOnlyWrites(t *testing.T) {
	t.Parallel()
	found := 0
	for _, s := range statements(everything(t)) {
		if s.where != "WorkerUser" {
			continue
		}
		found++
		if !slices.Equal(s.actions, []string{"s3:AbortMultipartUpload", "s3:PutObject"}) ||
			len(s.resources) != 1 || !strings.HasPrefix(s.resources[0], "${Uploads") || !strings.HasSuffix(s.resources[0], "/exports/*") {
			t.Errorf("the worker may do %v on %v", s.actions, s.resources)
		}
	}
	if found != 1 {
		t.Errorf("the worker has %d statements", found)
	}
}

// TestLogsAreKeptBesideTheOutputs: what the orchestrator keeps and deletes in the
// second bucket is TENANT/logs/... beside exports/..., and Sortie's own user has
// to reach both.
func TestLogsAreKeptBesideTheOutputs(t *testing.T) {
	t.Parallel()
	var reached []string
	for _, s := range statements(everything(t)) {
		if s.where == "OutputsUser" && slices.Contains(s.actions, "s3:PutObject") && slices.Contains(s.actions, "s3:DeleteObject") {
			reached = append(reached, s.resources...)
		}
	}
	for _, wanted := range []string{"/exports/*", "/*/logs/*"} {
		if !slices.ContainsFunc(reached, func(on string) bool {
			bucket, objects, _ := strings.Cut(on, ".Arn}")
			return strings.HasPrefix(bucket, "${Accepted") && objects == wanted
		}) {
			t.Errorf("Sortie may not write and delete %s of the second bucket, only %v", wanted, reached)
		}
	}
}

func TestKeysOfBucketsAreNowhereInPlain(t *testing.T) {
	t.Parallel()
	made := everything(t)
	secret := named(t, made, "SecretsManager::Secret", "SecretOutputs").Text("SecretString")
	for _, part := range []string{"${OutputsUserKey.SecretAccessKey}", "${WorkerUserKey.SecretAccessKey}"} {
		if !strings.Contains(secret, part) {
			t.Errorf("the secret does not refer to %s: %s", part, secret)
		}
	}
	if strings.Contains(fmt.Sprint(made.Outputs), "SecretAccessKey") {
		t.Error("an output of the stack has a key")
	}
	for _, s := range deployed(t).Of("SecretsManager::Secret") {
		if s.At("SecretString") != nil || s.At("GenerateSecretString") != nil {
			t.Errorf("%s is not created empty", s.ID)
		}
	}
}

// TestWhatTheAdaptersCallIsAllowed: each operation of an SDK that an adapter
// names is allowed to somebody, and nothing else of that service is.
func TestWhatTheAdaptersCallIsAllowed(t *testing.T) {
	t.Parallel()
	calls := regexp.MustCompile(`\b(sfn|dynamodb|kms|eventbridge|secretsmanager)\.([A-Z]\w+)Input\b`)
	prefix := map[string]string{"sfn": "states", "eventbridge": "events"}
	// A transaction is its parts; the command line puts secrets, not a function;
	// a stream is read by Lambda for the function.
	apart := map[string][]string{"dynamodb:TransactWriteItems": {"dynamodb:ConditionCheckItem"}, "secretsmanager:PutSecretValue": nil}
	wanted := map[string]bool{}
	for _, adapter := range []string{"dynamo", "stepfunctions", "kms", "eventbridge", "secrets"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "shared", "adapter", adapter, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("there is no adapter %s: %v", adapter, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, call := range calls.FindAllStringSubmatch(string(text), -1) {
				action := cmp.Or(prefix[call[1]], call[1]) + ":" + call[2]
				if parts, is := apart[action]; is {
					for _, part := range parts {
						wanted[part] = true
					}
					continue
				}
				wanted[action] = true
			}
		}
	}
	allowedTo := map[string]bool{}
	for _, s := range statements(deployed(t)) {
		for _, action := range s.actions {
			service, _, _ := strings.Cut(action, ":")
			ofStream := strings.Contains(action, "Stream") || strings.Contains(action, "Shard") || strings.Contains(action, "GetRecords")
			if slices.Contains([]string{"states", "dynamodb", "kms", "events", "secretsmanager"}, service) && !ofStream {
				allowedTo[action] = true
			}
		}
	}
	if diff := gocmp.Diff(wanted, allowedTo); diff != "" {
		t.Errorf("what adapters call (-) and what is allowed (+) differ:\n%s", diff)
	}
}

// TestWhoeverCommitsMayDoAllOfIt: a commit that gives a slot back reads the runs
// that it is about in a batch, so that a role which may write items and may not
// read them in batches loses its commits as soon as a pool has a limit.
func TestWhoeverCommitsMayDoAllOfIt(t *testing.T) {
	t.Parallel()
	commit := []string{
		"dynamodb:BatchGetItem", "dynamodb:ConditionCheckItem", "dynamodb:DeleteItem", "dynamodb:GetItem",
		"dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem",
	}
	may := map[string][]string{}
	for _, s := range statements(deployed(t)) {
		if slices.ContainsFunc(s.resources, func(on string) bool { return strings.HasPrefix(on, "${Table") && strings.HasSuffix(on, ".Arn}") }) {
			may[s.where] = append(may[s.where], s.actions...)
		}
	}
	writers := 0
	for role, actions := range may {
		if !slices.Contains(actions, "dynamodb:UpdateItem") {
			continue
		}
		writers++
		for _, action := range commit {
			if !slices.Contains(actions, action) {
				t.Errorf("%s may not %s", role, action)
			}
		}
	}
	if writers < 10 {
		t.Errorf("%d roles write: the steps, the sweep and most front doors have to", writers)
	}
}
