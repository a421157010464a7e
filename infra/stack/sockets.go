package stack

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/app/stream"
)

// sockets identifies the WebSocket API and the queue of tenants for other resources. The queue
// contains the tenants whose connections have events to receive. Without the API, sockets is
// the zero value.
type sockets struct {
	api, url string
	// connections returns the ARN of a method of the connections.
	connections        func(method string) string
	queueARN, queueURL string
}

// hasSockets reports whether the stage has the WebSocket API. LocalStack's community edition
// does not support it.
func hasSockets(s Settings) bool { return s.LocalStack == "" }

// The settings of the queue of the tenants with connections.
const (
	// pushTimeout is the timeout of the function push, which serves a tenant for some seconds.
	pushTimeout = 30
	pushBatch   = 10 // the maximum of a FIFO queue
	// pushConcurrency is the maximum number of concurrent calls of the function by the queue.
	// With ten tenants in a call, the tenants with connections do not use all executions of the
	// account.
	pushConcurrency = 20
	// pushHidden is the visibility timeout: the time after which a tenant is pushed again if
	// its function crashed. The tenant's next messages wait as long, so it is shorter than that
	// of other queues.
	pushHidden = 2 * pushTimeout
	// pushRetention is short: the relay enqueues each tenant with a connection once a minute.
	pushRetention = 300
)

// socketRoutes are the routes of the WebSocket API. All of them invoke the function socket.
var socketRoutes = []string{"$connect", "$disconnect", "$default"}

// addSockets adds the WebSocket API without its routes, and the queue.
func (b *builder) addSockets() {
	if !hasSockets(b.settings) {
		return
	}
	api := awsapigatewayv2.NewCfnApi(b.stack, jsii.String("Sockets"), &awsapigatewayv2.CfnApiProps{
		Name: jsii.String(b.name("sockets")), Description: jsii.String("the WebSockets of Sortie, stage " + b.settings.Stage),
		ProtocolType: jsii.String("WEBSOCKET"), RouteSelectionExpression: jsii.String("$request.body.action"), // no route has an action
	})
	queue := awssqs.NewCfnQueue(b.stack, jsii.String("Pushes"), &awssqs.CfnQueueProps{
		QueueName: jsii.String(b.name("pushes") + ".fifo"), FifoQueue: true, SqsManagedSseEnabled: true,
		// The limit of requests per second then applies to each tenant.
		DeduplicationScope: jsii.String("messageGroup"), FifoThroughputLimit: jsii.String("perMessageGroupId"),
		MessageRetentionPeriod: num(pushRetention), VisibilityTimeout: num(pushHidden),
	})
	stage := *api.Ref() + "/" + b.settings.Stage
	b.sockets = sockets{
		api: *api.Ref(), url: *api.Ref() + ".execute-api." + *b.stack.Region() + "." + *b.stack.UrlSuffix() + "/" + b.settings.Stage,
		connections: func(method string) string {
			return b.arn("execute-api", stage, method+"/@connections/*", awscdk.ArnFormat_SLASH_RESOURCE_NAME)
		},
		queueARN: *queue.AttrArn(), queueURL: *queue.Ref(),
	}
}

// socketLog is the format of the access log of the WebSocket API. It contains no data of a
// client.
const socketLog = requestLog + `"event":"$context.eventType","route":"$context.routeKey","connectionId":"$context.connectionId"}`

// addSocketRoutes connects the WebSocket API and the queue to their functions. The access log
// needs the role of the account, which api adds.
func (b *builder) addSocketRoutes(api awsapigateway.RestApi) {
	if !hasSockets(b.settings) {
		return
	}
	function := b.callable("socket").FunctionArn()
	integration := awsapigatewayv2.NewCfnIntegration(b.stack, jsii.String("SocketsFunction"), &awsapigatewayv2.CfnIntegrationProps{
		ApiId: &b.sockets.api, IntegrationType: jsii.String("AWS_PROXY"), TimeoutInMillis: num(bufferedTimeout),
		IntegrationUri: jsii.String("arn:" + *b.stack.Partition() + ":apigateway:" + *b.stack.Region() + ":lambda:path/2015-03-31/functions/" + *function + "/invocations"),
	})
	for _, key := range socketRoutes {
		awsapigatewayv2.NewCfnRoute(b.stack, jsii.String("SocketsOn"+capital(strings.TrimPrefix(key, "$"))), &awsapigatewayv2.CfnRouteProps{
			// The function authorizes a handshake as it does other requests.
			ApiId: &b.sockets.api, RouteKey: jsii.String(key), AuthorizationType: jsii.String("NONE"),
			Target: jsii.String("integrations/" + *integration.Ref()),
		})
	}
	stage := awsapigatewayv2.NewCfnStage(b.stack, jsii.String("SocketsStage"), &awsapigatewayv2.CfnStageProps{
		ApiId: &b.sockets.api, StageName: jsii.String(b.settings.Stage), AutoDeploy: true,
		DefaultRouteSettings: &awsapigatewayv2.CfnStage_RouteSettingsProperty{
			ThrottlingRateLimit: num(stream.SocketRate), ThrottlingBurstLimit: num(stream.SocketRate),
			LoggingLevel: jsii.String("OFF"), DataTraceEnabled: false, DetailedMetricsEnabled: false,
		},
		AccessLogSettings: &awsapigatewayv2.CfnStage_AccessLogSettingsProperty{
			DestinationArn: b.newLogGroup("LogsSockets", "").AttrArn(), Format: jsii.String(socketLog),
		},
	})
	stage.Node().AddDependency(api.Node().FindChild(jsii.String("Account")))
	awslambda.NewCfnPermission(b.stack, jsii.String("SocketsPermission"), &awslambda.CfnPermissionProps{
		Action: jsii.String("lambda:InvokeFunction"), FunctionName: function, Principal: jsii.String("apigateway.amazonaws.com"),
		SourceArn: jsii.String(b.arn("execute-api", b.sockets.api, b.settings.Stage+"/*", awscdk.ArnFormat_SLASH_RESOURCE_NAME)),
	})
	awslambda.NewCfnEventSourceMapping(b.stack, jsii.String("Pushing"), &awslambda.CfnEventSourceMappingProps{
		FunctionName: b.callable("push").FunctionArn(), EventSourceArn: &b.sockets.queueARN, BatchSize: num(pushBatch),
		ScalingConfig: &awslambda.CfnEventSourceMapping_ScalingConfigProperty{MaximumConcurrency: num(pushConcurrency)},
	})
	b.result("SocketURL", "wss://"+b.sockets.url, "the address of the WebSocket")
}

// socketGrants returns the grants of the functions for WebSockets.
func (b *builder) socketGrants() map[use]grant {
	if !hasSockets(b.settings) {
		return nil
	}
	queue := map[string]string{"SORTIE_PUSHES": b.sockets.queueURL}
	both := map[string]string{"SORTIE_PUSHES": b.sockets.queueURL, "SORTIE_SOCKETS_URL": "https://" + b.sockets.url}
	manages := func(methods ...string) statement {
		s := statement{actions: []string{"execute-api:ManageConnections"}}
		for _, method := range methods {
			s.resources = append(s.resources, b.sockets.connections(method))
		}
		return s
	}
	sends := statement{actions: []string{"sqs:SendMessage"}, resources: []string{b.sockets.queueARN}}
	return map[use]grant{
		rouses: {queue, []statement{sends}},
		greets: {both, []statement{b.writesOnly(schema.SeatPartitions, schema.ConnectionPartitions), sends, manages("DELETE")}},
		pushes: {both, []statement{
			b.writesOnly(schema.SeatPartitions, schema.ConnectionPartitions), sends, manages("DELETE", "POST"),
			{actions: []string{"sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"}, resources: []string{b.sockets.queueARN}},
		}},
		occupies: {map[string]string{"SORTIE_READERS": b.settings.readers()["SORTIE_READERS"]}, nil},
	}
}

// writesOnly returns a permission to put and delete the items whose partition key has one of
// the prefixes.
func (b *builder) writesOnly(prefixes ...string) statement {
	s := statement{actions: []string{"dynamodb:DeleteItem", "dynamodb:PutItem"}, resources: []string{b.table.arn}}
	for _, prefix := range prefixes {
		s.partitions = append(s.partitions, prefix+"*")
	}
	return s
}
