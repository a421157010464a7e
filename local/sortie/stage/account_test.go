package stage_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/sortie-dev/sortie/local/sortie/stage"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// account is a fake AWS account with one stack, in process.
type account struct {
	t *testing.T
	// stack is the template of sortie-prod; empty means no stack.
	stack string
	// outputs of the stack.
	outputs map[string]string
	// bucketOf maps logical ids to buckets; objects has the versions of each bucket.
	bucketOf map[string]string
	objects  map[string][]string
	tables   map[string]*table
	// polls is the number of describe calls before a table is active.
	polls int
	// running are the numbers of executions that successive list calls return.
	running []int
	// calls are the changes, in order.
	calls []string
}

// table is one table of the account.
type table struct {
	describes  int
	ttl        string
	stream     bool
	protection bool
	recovery   bool
	tags       map[string]string
}

// arrange serves the account and returns its stage prod.
func arrange(t *testing.T, a *account) *stage.Stage {
	t.Helper()
	s, err := a.find(t, "prod")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (a *account) find(t *testing.T, name string) (*stage.Stage, error) {
	t.Helper()
	a.t = t
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	cfg := aws.Config{
		Region: "eu-west-1", BaseEndpoint: &server.URL, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	}
	return stage.Find(t.Context(), cfg, name, instant{})
}

// instant is a clock whose timers fire immediately.
type instant struct{ clock.System }

// NewTimer implements clock.Clock.
func (instant) NewTimer(time.Duration) (<-chan time.Time, func()) {
	fired := make(chan time.Time, 1)
	fired <- time.Time{}
	return fired, func() {}
}

// ServeHTTP answers the calls of every service that a stage uses.
func (a *account) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		a.t.Error(err)
	}
	target := r.Header.Get("X-Amz-Target")
	_, operation, _ := strings.Cut(target, ".")
	switch {
	case target != "":
		a.json(w, operation, body)
	case strings.Contains(r.URL.Path, "/functions/"):
		a.calls = append(a.calls, strings.TrimSpace(r.Method+" "+strings.Split(r.URL.Path, "/functions/")[1]+" "+string(body)))
		_, _ = io.WriteString(w, "{}")
	case strings.Contains(string(body), "Action="):
		a.query(w, string(body))
	default:
		a.s3(w, r, body)
	}
}

// query answers CloudFormation.
func (a *account) query(w http.ResponseWriter, body string) {
	form, err := url.ParseQuery(body)
	if err != nil {
		a.t.Error(err)
	}
	if a.stack == "" || form.Get("StackName") != "sortie-prod" {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `<ErrorResponse><Error><Code>ValidationError</Code><Message>Stack does not exist</Message></Error></ErrorResponse>`)
		return
	}
	var result string
	switch action := form.Get("Action"); action {
	case "DescribeStacks":
		for name, value := range a.outputs {
			result += "<member><OutputKey>" + name + "</OutputKey><OutputValue>" + value + "</OutputValue></member>"
		}
		result = "<Stacks><member><StackName>sortie-prod</StackName><StackStatus>UPDATE_COMPLETE</StackStatus><Outputs>" + result + "</Outputs></member></Stacks>"
	case "GetTemplate":
		result = "<TemplateBody><![CDATA[" + a.stack + "]]></TemplateBody>"
	case "DescribeStackResource":
		result = "<StackResourceDetail><PhysicalResourceId>" + a.bucketOf[form.Get("LogicalResourceId")] +
			"</PhysicalResourceId><ResourceStatus>CREATE_COMPLETE</ResourceStatus></StackResourceDetail>"
	default:
		a.t.Errorf("unexpected call %s", action)
	}
	name := form.Get("Action")
	_, _ = fmt.Fprintf(w, "<%[1]sResponse><%[1]sResult>%s</%[1]sResult></%[1]sResponse>", name, result)
}

// json answers DynamoDB and Step Functions.
func (a *account) json(w http.ResponseWriter, operation string, body []byte) {
	var in struct {
		TableName, TargetTableName, SourceTableName, ResourceArn string
		RestoreDateTime                                          float64
		UseLatestRestorableTime                                  bool
		StreamSpecification                                      *struct{ StreamViewType string }
		DeletionProtectionEnabled                                *bool
		TimeToLiveSpecification                                  struct{ AttributeName string }
		Tags                                                     []struct{ Key, Value string }
	}
	if err := json.Unmarshal(body, &in); err != nil {
		a.t.Error(err)
	}
	if arn, name, ok := strings.Cut(in.ResourceArn, "table/"); ok && arn != "" {
		in.TableName = name
	}
	is := a.tables[in.TableName]
	if is == nil && in.TableName != "" {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"no table"}`)
		return
	}
	out := map[string]any{}
	if !strings.HasPrefix(operation, "Describe") && !strings.HasPrefix(operation, "List") {
		a.calls = append(a.calls, operation)
	}
	switch operation {
	case "ListExecutions":
		out["executions"] = make([]map[string]any, a.running[0])
		if len(a.running) > 1 {
			a.running = a.running[1:]
		}
	case "DescribeTable":
		out["Table"] = a.describe(in.TableName, is)
	case "RestoreTableToPointInTime":
		a.calls[len(a.calls)-1] += fmt.Sprintf(" %s %s %.0f %t", in.SourceTableName, in.TargetTableName, in.RestoreDateTime, in.UseLatestRestorableTime)
		a.tables[in.TargetTableName] = &table{ttl: "DISABLED", tags: map[string]string{}}
	case "DescribeTimeToLive":
		out["TimeToLiveDescription"] = map[string]any{"TimeToLiveStatus": is.ttl}
	case "UpdateTimeToLive":
		is.ttl = "ENABLED " + in.TimeToLiveSpecification.AttributeName
	case "UpdateContinuousBackups":
		is.recovery = true
	case "UpdateTable":
		is.describes = 0
		is.stream = is.stream || in.StreamSpecification != nil
		is.protection = is.protection || in.DeletionProtectionEnabled != nil && *in.DeletionProtectionEnabled
	case "ListTagsOfResource":
		tags := []map[string]string{}
		for key, value := range is.tags {
			tags = append(tags, map[string]string{"Key": key, "Value": value})
		}
		out["Tags"] = tags
	case "TagResource":
		for _, tag := range in.Tags {
			is.tags[tag.Key] = tag.Value
		}
	default:
		a.t.Errorf("unexpected call %s", operation)
	}
	if err := json.NewEncoder(w).Encode(out); err != nil {
		a.t.Error(err)
	}
}

// describe describes a table, which becomes active after some polls.
func (a *account) describe(name string, is *table) map[string]any {
	arn := "arn:aws:dynamodb:eu-west-1:111122223333:table/" + name
	out := map[string]any{
		"TableName": name, "TableArn": arn, "TableStatus": "ACTIVE", "DeletionProtectionEnabled": is.protection,
		"GlobalSecondaryIndexes": []map[string]any{{"IndexName": "due", "IndexStatus": "ACTIVE"}},
	}
	if is.describes < a.polls {
		out["GlobalSecondaryIndexes"].([]map[string]any)[0]["IndexStatus"] = "CREATING"
	}
	is.describes++
	if is.stream {
		out["StreamSpecification"] = map[string]any{"StreamEnabled": true}
		out["LatestStreamArn"] = arn + "/stream/2026-11-22T09:00:00.000"
	}
	return out
}

// s3 serves lists of versions, two per page, and their deletion.
func (a *account) s3(w http.ResponseWriter, r *http.Request, body []byte) {
	bucket, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	asked := r.URL.Query()
	switch {
	case asked.Has("versions"):
		var list string
		for i, version := range a.objects[bucket][:min(2, len(a.objects[bucket]))] {
			element := []string{"Version", "DeleteMarker"}[i]
			key, id, _ := strings.Cut(version, "@")
			list += "<" + element + "><Key>" + key + "</Key><VersionId>" + id + "</VersionId></" + element + ">"
		}
		_, _ = io.WriteString(w, "<ListVersionsResult>"+list+"</ListVersionsResult>")
	case asked.Has("delete"):
		a.objects[bucket] = slices.DeleteFunc(a.objects[bucket], func(version string) bool {
			key, id, _ := strings.Cut(version, "@")
			return strings.Contains(string(body), "<Key>"+key+"</Key><VersionId>"+id+"</VersionId>")
		})
		_, _ = io.WriteString(w, "<DeleteResult></DeleteResult>")
	case asked.Has("uploads"):
		_, _ = io.WriteString(w, "<ListMultipartUploadsResult><Upload><Key>part</Key><UploadId>u</UploadId></Upload></ListMultipartUploadsResult>")
	case r.Method == http.MethodDelete:
		a.calls = append(a.calls, "abort "+bucket+" "+asked.Get("uploadId"))
		w.WriteHeader(http.StatusNoContent)
	default:
		a.t.Errorf("unexpected call %s %s", r.Method, r.URL)
	}
}
