package stack_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/infra/stack"
	"github.com/sortie-dev/sortie/local/sortie/template"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
)

func expect(t *testing.T, r *template.Resource, want string, path ...string) {
	t.Helper()
	if got := r.Text(path...); got != want {
		t.Errorf("%s: got %s %q, want %q", r.ID, strings.Join(path, "."), got, want)
	}
}

func TestTableMatchesTheSchema(t *testing.T) {
	t.Parallel()
	table := named(t, deployed(t), "DynamoDB::Table", "Table")
	expect(t, table, "PAY_PER_REQUEST", "BillingMode")
	expect(t, table, "true", "PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled")
	expect(t, table, schema.TTL, "TimeToLiveSpecification", "AttributeName")
	expect(t, table, "true", "TimeToLiveSpecification", "Enabled")
	expect(t, table, schema.StreamView, "StreamSpecification", "StreamViewType")
	expect(t, table, "true", "DeletionProtectionEnabled")
	if n := len(table.At("GlobalSecondaryIndexes").([]any)); n != len(schema.Indexes()) {
		t.Errorf("got %d indexes, want %d", n, len(schema.Indexes()))
	}
	for _, index := range schema.Indexes() {
		if !strings.Contains(table.Text("GlobalSecondaryIndexes"), `"IndexName":"`+index.Name+`"`) {
			t.Errorf("got no index %s", index.Name)
		}
	}
	if table.At("SSESpecification") != nil {
		t.Error("got an SSESpecification, want DynamoDB's own key")
	}
}

func TestDataIsRetainedByDefault(t *testing.T) {
	t.Parallel()
	deleted := synth(t, map[string]any{"retain": false, "outputs": "s3"})
	for _, kind := range []string{"DynamoDB::Table", "S3::Bucket"} {
		for _, r := range everything(t).Of(kind) {
			want := "RetainExceptOnCreate"
			if kind == "DynamoDB::Table" {
				want = "Retain" // it is protected against deletion, also by a rollback
			}
			if r.DeletionPolicy != want || r.UpdateReplacePolicy != "Retain" {
				t.Errorf("%s: got the policies %s and %s, want %s and Retain", r.ID, r.DeletionPolicy, r.UpdateReplacePolicy, want)
			}
		}
		for _, r := range deleted.Of(kind) {
			if r.DeletionPolicy != "Delete" {
				t.Errorf("%s with retain=false: got no Delete", r.ID)
			}
		}
	}
	if named(t, deleted, "DynamoDB::Table", "Table").Text("DeletionProtectionEnabled") != "false" {
		t.Error("retain=false: got deletion protection of the table")
	}
}

func TestRetainedStackIsProtected(t *testing.T) {
	t.Parallel()
	for _, retain := range []bool{true, false} {
		settings, err := stack.ReadSettings(given(map[string]any{"retain": retain}))
		if err != nil {
			t.Fatal(err)
		}
		made := stackOf(t, settings)
		kernel.Lock()
		got := *made.TerminationProtection()
		kernel.Unlock()
		if got != retain {
			t.Errorf("retain=%t: got termination protection %t", retain, got)
		}
	}
}

func TestBucketsArePrivate(t *testing.T) {
	t.Parallel()
	made := everything(t)
	buckets := made.Of("S3::Bucket")
	if len(buckets) != 2 {
		t.Fatalf("got %d buckets, want 2", len(buckets))
	}
	for _, b := range buckets {
		for _, what := range []string{"BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"} {
			expect(t, b, "true", "PublicAccessBlockConfiguration", what)
		}
		if !strings.Contains(b.Text("BucketEncryption"), `"SSEAlgorithm":"AES256"`) {
			t.Errorf("%s: got encryption %s, want AES256", b.ID, b.Text("BucketEncryption"))
		}
		for _, rule := range []string{"ExpirationInDays", "AbortIncompleteMultipartUpload"} {
			if !strings.Contains(b.Text("LifecycleConfiguration"), rule) {
				t.Errorf("%s: got no lifecycle rule %s", b.ID, rule)
			}
		}
	}
	for _, p := range made.Of("S3::BucketPolicy") {
		if !strings.Contains(p.Text("PolicyDocument"), `"aws:SecureTransport":"false"`) {
			t.Errorf("%s allows plain HTTP", p.ID)
		}
	}
	if n := len(deployed(t).Of("S3::Bucket")); n != 0 {
		t.Errorf("r2: got %d buckets, want 0", n)
	}
}

func TestLogsExpire(t *testing.T) {
	t.Parallel()
	made := synth(t, map[string]any{"logDays": 14})
	for _, group := range made.Of("Logs::LogGroup") {
		expect(t, group, "14", "RetentionInDays")
	}
	for _, f := range made.Of("Lambda::Function") {
		if !strings.HasPrefix(f.Text("LoggingConfig", "LogGroup"), "${Logs") {
			t.Errorf("%s: got log group %s", f.ID, f.Text("LoggingConfig"))
		}
		expect(t, f, "JSON", "LoggingConfig", "LogFormat")
		expect(t, f, "WARN", "LoggingConfig", "SystemLogLevel")
	}
}

func TestKeysOnlySign(t *testing.T) {
	t.Parallel()
	made := everything(t)
	keys := made.Of("KMS::Key")
	if len(keys) != 2 {
		t.Fatalf("got %d keys, want 2", len(keys))
	}
	for _, key := range keys {
		expect(t, key, "ECC_NIST_P256", "KeySpec")
		expect(t, key, "SIGN_VERIFY", "KeyUsage")
		expect(t, key, "30", "PendingWindowInDays")
	}
	for _, name := range []string{"launch", "callback"} {
		keys := functionOf(t, made, name).Text("Environment", "Variables", "SORTIE_KEYS")
		if !strings.HasPrefix(keys, "${SigningKey2") || !strings.Contains(keys, ",${SigningKey1") {
			t.Errorf("%s: got keys %s, want key 2 first", name, keys)
		}
	}
}

func TestEverythingIsTagged(t *testing.T) {
	t.Parallel()
	made := everything(t)
	for _, kind := range []string{"DynamoDB::Table", "Lambda::Function", "S3::Bucket", "SecretsManager::Secret", "KMS::Key", "StepFunctions::StateMachine", "SQS::Queue", "ApiGateway::Stage", "Logs::LogGroup", "CloudWatch::Alarm"} {
		for _, r := range made.Of(kind) {
			text, err := json.Marshal(r.At("Tags"))
			if err != nil || !strings.Contains(string(text), `{"Key":"project","Value":"sortie"}`) || !strings.Contains(string(text), `{"Key":"stage","Value":"dev"}`) {
				t.Errorf("%s: got tags %s", r.ID, text)
			}
		}
	}
}

// TestRestoredTableReplacesTheStacks checks that the stack can use a table that was restored
// from a backup under another name, without a copy.
func TestRestoredTableReplacesTheStacks(t *testing.T) {
	t.Parallel()
	const arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/sortie-restored"
	const stream = arn + "/stream/2026-03-01T08:00:00.000"
	restored := synth(t, map[string]any{"tableStream": stream})
	if n := len(restored.Of("DynamoDB::Table")); n != 0 {
		t.Errorf("got %d tables, want 0", n)
	}
	expect(t, named(t, restored, "Lambda::EventSourceMapping", "Stream"), stream, "EventSourceArn")
	expect(t, named(t, restored, "Lambda::Function", "Status"), "sortie-restored", "Environment", "Variables", "SORTIE_TABLE")
	if role := named(t, restored, "IAM::Role", "RoleStatus").Text("Policies"); !strings.Contains(role, `"`+arn+`"`) {
		t.Errorf("got role %s, want the restored table", role)
	}
}
