package stack_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/infra/template"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
)

func expect(t *testing.T, r *template.Resource, want string, path ...string) {
	t.Helper()
	if got := r.Text(path...); got != want {
		t.Errorf("%s: %s is %q, not %q", r.ID, strings.Join(path, "."), got, want)
	}
}

func TestTheTableIsItsAdapters(t *testing.T) {
	t.Parallel()
	table := named(t, deployed(t), "DynamoDB::Table", "Table")
	expect(t, table, "PAY_PER_REQUEST", "BillingMode")
	expect(t, table, "true", "PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled")
	expect(t, table, schema.TTL, "TimeToLiveSpecification", "AttributeName")
	expect(t, table, "true", "TimeToLiveSpecification", "Enabled")
	expect(t, table, schema.StreamView, "StreamSpecification", "StreamViewType")
	expect(t, table, "true", "DeletionProtectionEnabled")
	if n := len(table.At("GlobalSecondaryIndexes").([]any)); n != len(schema.Indexes()) {
		t.Errorf("it has %d indexes, not %d", n, len(schema.Indexes()))
	}
	for _, index := range schema.Indexes() {
		if !strings.Contains(table.Text("GlobalSecondaryIndexes"), `"IndexName":"`+index.Name+`"`) {
			t.Errorf("the index %s is missing", index.Name)
		}
	}
	if table.At("SSESpecification") != nil {
		t.Error("it is encrypted otherwise than with DynamoDB's own key")
	}
}

func TestDataStayUnlessTheStageSaysOtherwise(t *testing.T) {
	t.Parallel()
	goes := synth(t, map[string]any{"retain": false, "outputs": "s3"})
	for _, kind := range []string{"DynamoDB::Table", "S3::Bucket"} {
		for _, r := range everything(t).Of(kind) {
			if r.DeletionPolicy != "Retain" || r.UpdateReplacePolicy != "Retain" {
				t.Errorf("%s goes with the stack", r.ID)
			}
		}
		for _, r := range goes.Of(kind) {
			if r.DeletionPolicy != "Delete" {
				t.Errorf("%s stays, and retain is false", r.ID)
			}
		}
	}
	if named(t, goes, "DynamoDB::Table", "Table").Text("DeletionProtectionEnabled") != "false" {
		t.Error("the table cannot be deleted, and retain is false")
	}
}

func TestBucketsAreClosed(t *testing.T) {
	t.Parallel()
	made := everything(t)
	buckets := made.Of("S3::Bucket")
	if len(buckets) != 2 {
		t.Fatalf("there are %d buckets", len(buckets))
	}
	for _, b := range buckets {
		for _, what := range []string{"BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"} {
			expect(t, b, "true", "PublicAccessBlockConfiguration", what)
		}
		if !strings.Contains(b.Text("BucketEncryption"), `"SSEAlgorithm":"AES256"`) {
			t.Errorf("%s is not encrypted: %s", b.ID, b.Text("BucketEncryption"))
		}
		for _, rule := range []string{"ExpirationInDays", "AbortIncompleteMultipartUpload"} {
			if !strings.Contains(b.Text("LifecycleConfiguration"), rule) {
				t.Errorf("%s has no backstop %s", b.ID, rule)
			}
		}
	}
	for _, p := range made.Of("S3::BucketPolicy") {
		if !strings.Contains(p.Text("PolicyDocument"), `"aws:SecureTransport":"false"`) {
			t.Errorf("%s lets plain HTTP in", p.ID)
		}
	}
	if n := len(deployed(t).Of("S3::Bucket")); n != 0 {
		t.Errorf("with r2 there are %d buckets", n)
	}
}

func TestEveryLogEnds(t *testing.T) {
	t.Parallel()
	made := synth(t, map[string]any{"logDays": 14})
	for _, group := range made.Of("Logs::LogGroup") {
		expect(t, group, "14", "RetentionInDays")
	}
	for _, f := range made.Of("Lambda::Function") {
		if !strings.HasPrefix(f.Text("LoggingConfig", "LogGroup"), "${Logs") {
			t.Errorf("%s logs to %s", f.ID, f.Text("LoggingConfig"))
		}
		expect(t, f, "JSON", "LoggingConfig", "LogFormat")
		expect(t, f, "WARN", "LoggingConfig", "SystemLogLevel")
	}
}

func TestTheKeysSignAlone(t *testing.T) {
	t.Parallel()
	made := everything(t)
	keys := made.Of("KMS::Key")
	if len(keys) != 2 {
		t.Fatalf("there are %d keys", len(keys))
	}
	for _, key := range keys {
		expect(t, key, "ECC_NIST_P256", "KeySpec")
		expect(t, key, "SIGN_VERIFY", "KeyUsage")
		expect(t, key, "30", "PendingWindowInDays")
	}
	for _, name := range []string{"launch", "callback"} {
		told := functionOf(t, made, name).Text("Environment", "Variables", "SORTIE_KEYS")
		if !strings.HasPrefix(told, "${SigningKey2") || !strings.Contains(told, ",${SigningKey1") {
			t.Errorf("%s does not sign with the first key: %s", name, told)
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
				t.Errorf("%s is tagged %s", r.ID, text)
			}
		}
	}
}

// TestARestoredTableTakesThePlaceOfTheStacks: what was restored to a moment is
// another table, and going on with it must need no copy.
func TestARestoredTableTakesThePlaceOfTheStacks(t *testing.T) {
	t.Parallel()
	const arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/sortie-restored"
	const stream = arn + "/stream/2026-03-01T08:00:00.000"
	restored := synth(t, map[string]any{"tableStream": stream})
	if n := len(restored.Of("DynamoDB::Table")); n != 0 {
		t.Errorf("%d tables are made", n)
	}
	expect(t, named(t, restored, "Lambda::EventSourceMapping", "Stream"), stream, "EventSourceArn")
	expect(t, named(t, restored, "Lambda::Function", "Status"), "sortie-restored", "Environment", "Variables", "SORTIE_TABLE")
	if role := named(t, restored, "IAM::Role", "RoleStatus").Text("Policies"); !strings.Contains(role, `"`+arn+`"`) {
		t.Errorf("the role of status may read another table: %s", role)
	}
}
