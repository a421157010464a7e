package stack_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/sortie/template"
	"github.com/sortie-dev/sortie/shared/app/stream"
)

// TestWebSocketIsInItsAPI checks the WebSocket API, which LocalStack's community edition does
// not support.
func TestWebSocketIsInItsAPI(t *testing.T) {
	t.Parallel()
	for _, made := range []template.Template{deployed(t), everything(t)} {
		expect(t, named(t, made, "ApiGatewayV2::Api", "Sockets"), "WEBSOCKET", "ProtocolType")
		var keys []string
		for _, r := range made.Of("ApiGatewayV2::Route") {
			keys = append(keys, r.Text("RouteKey"))
			expect(t, r, "${Sockets}", "ApiId")
			expect(t, r, "integrations/${SocketsFunction}", "Target")
		}
		if slices.Sort(keys); !slices.Equal(keys, []string{"$connect", "$default", "$disconnect"}) {
			t.Errorf("got the routes %v, want $connect, $default and $disconnect", keys)
		}
		integration := named(t, made, "ApiGatewayV2::Integration", "SocketsFunction")
		expect(t, integration, "AWS_PROXY", "IntegrationType")
		if uri := integration.Text("IntegrationUri"); !strings.Contains(uri, "Socket") || !strings.HasSuffix(uri, "/invocations") {
			t.Errorf("got the integration %s, want the function socket", uri)
		}
		waits, err := strconv.Atoi(integration.Text("TimeoutInMillis"))
		takes, err2 := strconv.Atoi(functionOf(t, made, "socket").Text("Timeout"))
		if err != nil || err2 != nil || waits > 29_000 || waits < takes*1000 {
			t.Errorf("got a timeout of %d ms for a function of %d s, want no less and at most 29 s", waits, takes)
		}
		stage := named(t, made, "ApiGatewayV2::Stage", "SocketsStage")
		expect(t, stage, "true", "AutoDeploy")
		expect(t, stage, fmt.Sprint(stream.SocketRate), "DefaultRouteSettings", "ThrottlingRateLimit")
		expect(t, stage, fmt.Sprint(stream.SocketRate), "DefaultRouteSettings", "ThrottlingBurstLimit")
		expect(t, stage, "false", "DefaultRouteSettings", "DataTraceEnabled")
		permission := named(t, made, "Lambda::Permission", "SocketsPermission")
		expect(t, permission, "apigateway.amazonaws.com", "Principal")
		if from := permission.Text("SourceArn"); !strings.Contains(from, "${Sockets}/"+stage.Text("StageName")+"/*") {
			t.Errorf("got the permission of %s, want that of the stage", from)
		}
		if url := template.Flat(made.Outputs["SocketURL"].Value); !strings.HasPrefix(url, "wss://${Sockets}.execute-api.") || !strings.HasSuffix(url, "/"+stage.Text("StageName")) {
			t.Errorf("got the address %s, want that of the stage", url)
		}
	}
}

// TestQueueOfConnections checks that the pushes of a tenant run one after another, and that a
// failed push does not block the next for long.
func TestQueueOfConnections(t *testing.T) {
	t.Parallel()
	made := deployed(t)
	queue, mapping := named(t, made, "SQS::Queue", "Pushes"), named(t, made, "Lambda::EventSourceMapping", "Pushing")
	hidden, err := strconv.Atoi(queue.Text("VisibilityTimeout"))
	takes, err2 := strconv.Atoi(functionOf(t, made, "push").Text("Timeout"))
	if err != nil || err2 != nil || hidden < takes || hidden > int(stream.SweepInterval.Seconds()) {
		t.Errorf("got messages hidden for %d s, want at least the function's %d s and at most a sweep", hidden, takes)
	}
	for field, want := range map[string]string{
		"FifoQueue": "true", "DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId", "SqsManagedSseEnabled": "true", "MessageRetentionPeriod": "300",
	} {
		expect(t, queue, want, field)
	}
	if name := queue.Text("QueueName"); !strings.HasSuffix(name, "-pushes.fifo") {
		t.Errorf("got the queue %s, want a FIFO queue", name)
	}
	expect(t, mapping, "${Pushes.Arn}", "EventSourceArn")
	if function := mapping.Text("FunctionName"); !strings.Contains(function, "Push") {
		t.Errorf("got the function %s, want push", function)
	}
	for _, name := range []string{"relay", "socket", "push"} {
		expect(t, functionOf(t, made, name), "${Pushes}", "Environment", "Variables", "SORTIE_PUSHES")
	}
}

// TestReadersWriteTheirItemsOnly checks the functions that only read events. They may write
// seats and connections, and no other items of the table.
func TestReadersWriteTheirItemsOnly(t *testing.T) {
	t.Parallel()
	for role, want := range map[string]string{
		"RoleStream": `["#seats#*"]`, "RoleSocket": `["#seats#*","#connection-*"]`, "RolePush": `["#seats#*","#connection-*"]`,
	} {
		writes := 0
		for _, r := range deployed(t).Of("IAM::Role") {
			if readable(r.ID) != role {
				continue
			}
			for _, policy := range asList(r.At("Policies")) {
				for _, s := range asList(policy.(map[string]any)["PolicyDocument"].(map[string]any)["Statement"]) {
					is := s.(map[string]any)
					actions := template.Flat(is["Action"])
					if !strings.Contains(actions, "dynamodb:PutItem") && !strings.Contains(actions, "dynamodb:DeleteItem") && !strings.Contains(actions, "dynamodb:UpdateItem") {
						continue
					}
					writes++
					condition, _ := is["Condition"].(map[string]any)
					like, _ := condition["ForAllValues:StringLike"].(map[string]any)
					if got := template.Flat(like["dynamodb:LeadingKeys"]); got != want {
						t.Errorf("%s: got writes to the partitions %s, want %s", role, got, want)
					}
				}
			}
		}
		if writes != 1 {
			t.Errorf("%s: got %d permissions to write, want 1", role, writes)
		}
	}
}

// TestManagementOfConnections checks which functions may send to connections and close them.
func TestManagementOfConnections(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	for _, s := range statements(deployed(t)) {
		if !slices.Contains(s.actions, "execute-api:ManageConnections") {
			continue
		}
		for _, on := range s.resources {
			_, method, _ := strings.Cut(on, "${Sockets}/")
			got[readable(s.where)] += method + " "
		}
	}
	want := map[string]string{"RoleSocket": "dev/DELETE/@connections/* ", "RolePush": "dev/DELETE/@connections/* dev/POST/@connections/* "}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestLocalStackHasNoWebSocketAPI lists the parts that LocalStack's community edition cannot
// run.
func TestLocalStackHasNoWebSocketAPI(t *testing.T) {
	t.Parallel()
	made := synth(t, map[string]any{
		"stage": "test", "stages": map[string]any{"test": map[string]any{}}, "localstack": "http://127.0.0.1:4600", "arch": "amd64",
	})
	for _, r := range made.Resources {
		if strings.HasPrefix(r.Type, "AWS::ApiGatewayV2::") {
			t.Errorf("got %s of %s, want no WebSocket API", r.ID, r.Type)
		}
	}
	for _, name := range []string{"socket", "push"} {
		if made.Function(name) != nil {
			t.Errorf("got the function %s, want none", name)
		}
	}
	if got := functionOf(t, made, "relay").Text("Environment", "Variables", "SORTIE_PUSHES"); got != "" {
		t.Errorf("got the queue %s of the relay, want none", got)
	}
}
