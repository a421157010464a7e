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
	"github.com/sortie-dev/sortie/local/sortie/template"
)

// reasons contains the reason for each permission that is wider than one resource. A row
// matches by a part of the resource and a part of the action.
var reasons = []struct{ resource, action, why string }{
	{":execution:sortie-dev-run:*", "states:", "executions are named after runs"},
	{":schedule/${JobSchedules}/*", "scheduler:", "schedules are named after jobs"},
	{":secret:sortie/dev/jobs/*", "secretsmanager:GetSecretValue", "the named secrets of all tenants"},
	{":secret:sortie/dev/jobs/*", "secretsmanager:DescribeSecret", "warnings of jobs whose secrets no tenant has"},
	{"/stream/*", "dynamodb:ListStreams", "the permission is for all streams of a table"},
	{"/@connections/*", "execute-api:ManageConnections", "connections are named by the gateway"},
	{".Arn}/exports/*", "s3:", "the objects of all tasks"},
	{".Arn}/*/logs/*", "s3:", "the logs of all tenants"},
	{"", "logs:CreateLogDelivery", "AWS: log deliveries have no resource"},
	{"", "logs:GetLogDelivery", "AWS: log deliveries have no resource"},
	{"", "logs:UpdateLogDelivery", "AWS: log deliveries have no resource"},
	{"", "logs:DeleteLogDelivery", "AWS: log deliveries have no resource"},
	{"", "logs:ListLogDeliveries", "AWS: log deliveries have no resource"},
	{"", "logs:PutResourcePolicy", "AWS: log deliveries have no resource"},
	{"", "logs:DescribeResourcePolicies", "AWS: log deliveries have no resource"},
	{"", "logs:DescribeLogGroups", "AWS: log deliveries have no resource"},
	{"", "xray:", "AWS: X-Ray has no resource"},
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

// statements returns the permissions of all roles and users.
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

func TestWildcardsHaveAReason(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]template.Template{"the defaults": deployed(t), "everything": everything(t)} {
		for _, s := range statements(made) {
			for _, action := range s.actions {
				if strings.Contains(action, "*") {
					t.Errorf("%s: %s may do %s", name, s.where, action)
				}
				for _, on := range s.resources {
					if strings.Contains(on, "*") && !hasReason(action, on) {
						t.Errorf("%s: %s may do %s on %s without a reason", name, s.where, action, on)
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

// TestManagedPoliciesAreForServices checks that only roles of AWS's own services have a managed
// policy, which AWS may change. AWS does not list the permissions that these roles need.
func TestManagedPoliciesAreForServices(t *testing.T) {
	t.Parallel()
	permitted := []string{"AmazonAPIGatewayPushToCloudWatchLogs", "AWSCodeDeployRoleForLambdaLimited", "AWSBackupServiceRolePolicyForBackup"}
	for _, r := range everything(t).Of("IAM::Role") {
		managed := r.Text("ManagedPolicyArns")
		if managed != "" && !slices.ContainsFunc(permitted, func(name string) bool { return strings.Contains(managed, "/service-role/"+name) }) {
			t.Errorf("%s has %s", r.ID, managed)
		}
	}
}

func TestEveryFunctionHasItsOwnRole(t *testing.T) {
	t.Parallel()
	made := everything(t)
	roles := map[string]string{}
	for _, name := range stack.Functions() {
		f := functionOf(t, made, name)
		role := f.Text("Role")
		if role == "" || roles[role] != "" {
			t.Errorf("%s and %q: got the same role %s", name, roles[role], role)
		}
		roles[role] = name
	}
	if n := len(made.Of("Lambda::Function")); n != len(stack.Functions()) {
		t.Errorf("got %d functions, want %d", n, len(stack.Functions()))
	}
}

// functionsOf returns the short names of the functions in a template.
func functionsOf(made template.Template) []string {
	return slices.DeleteFunc(stack.Functions(), func(name string) bool { return made.Function(name) == nil })
}

func functionOf(tb testing.TB, made template.Template, name string) *template.Resource {
	tb.Helper()
	f := made.Function(name)
	if f == nil {
		tb.Fatalf("got no function %s", name)
	}
	return f
}

// TestWorkerOnlyWrites checks that the worker's user can neither read nor list, and cannot
// write to the accepted bucket.
func TestWorkerOnlyWrites(t *testing.T) {
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
		t.Errorf("got %d statements for the worker, want 1", found)
	}
}

// TestSortieWritesOutputsAndLogs checks that Sortie's user can write and delete exports/... and
// TENANT/logs/... in the accepted bucket.
func TestSortieWritesOutputsAndLogs(t *testing.T) {
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
			t.Errorf("got no permission for %s of the accepted bucket, only %v", wanted, reached)
		}
	}
}

func TestTemplateHasNoBucketKeys(t *testing.T) {
	t.Parallel()
	made := everything(t)
	secret := named(t, made, "SecretsManager::Secret", "SecretOutputs").Text("SecretString")
	for _, part := range []string{"${OutputsUserKey.SecretAccessKey}", "${WorkerUserKey.SecretAccessKey}"} {
		if !strings.Contains(secret, part) {
			t.Errorf("got secret without %s: %s", part, secret)
		}
	}
	if strings.Contains(fmt.Sprint(made.Outputs), "SecretAccessKey") {
		t.Error("got a key in an output of the stack")
	}
	for _, s := range deployed(t).Of("SecretsManager::Secret") {
		if s.At("SecretString") != nil || s.At("GenerateSecretString") != nil {
			t.Errorf("%s: got a value, want none", s.ID)
		}
	}
}

// TestPermissionsMatchTheAdapters compares the operations in the code of the adapters with the
// permissions of all roles for the same services.
func TestPermissionsMatchTheAdapters(t *testing.T) {
	t.Parallel()
	calls := regexp.MustCompile(`\b(sfn|dynamodb|kms|eventbridge|scheduler|secretsmanager|ssm)\.([A-Z]\w+)Input\b`)
	prefix := map[string]string{"sfn": "states", "eventbridge": "events"}
	// A transaction needs the permissions of its parts. The command line stores secrets, not a
	// function. Lambda reads the stream for the function.
	apart := map[string][]string{"dynamodb:TransactWriteItems": {"dynamodb:ConditionCheckItem"}}
	for _, operation := range []string{"CreateSecret", "DeleteSecret", "ListSecrets", "PutSecretValue"} {
		apart["secretsmanager:"+operation] = nil
	}
	wanted := map[string]bool{}
	for _, adapter := range []string{"dynamo", "stepfunctions", "kms", "eventbridge", "scheduler", "secrets", "secrets/seed"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "shared", "adapter", adapter, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("got no adapter %s: %v", adapter, err)
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
			if slices.Contains([]string{"states", "dynamodb", "kms", "events", "scheduler", "secretsmanager", "ssm"}, service) && !ofStream {
				allowedTo[action] = true
			}
		}
	}
	if diff := gocmp.Diff(wanted, allowedTo); diff != "" {
		t.Errorf("calls of adapters (-) and permissions (+):\n%s", diff)
	}
}

// TestWritersMayCommit checks that each role that may update items has all permissions of a
// commit. A commit that releases a slot also reads runs in a batch.
func TestWritersMayCommit(t *testing.T) {
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
		t.Errorf("got %d roles that write, want at least 10", writers)
	}
}
