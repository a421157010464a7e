package stack

import (
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscertificatemanager"
	"github.com/aws/jsii-runtime-go"

	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// bufferedTimeout is how long API Gateway waits for a buffered response of a front door, in ms.
// It is AWS's maximum and more than the timeout of the function. A streamed response may take
// longer.
const bufferedTimeout = 29_000

// burst is the size of a burst of requests as a multiple of the rate.
const burst = 2

// anyMethod is API Gateway's name for all methods that a resource does not list.
const anyMethod = "ANY"

// everythingBelow is API Gateway's path segment for all paths below a resource.
const everythingBelow = "{proxy+}"

// rootPattern is the pattern of the root path alone.
const rootPattern = "/{$}"

// requestLog is the start of the format of an access log. functionRequestId equals request_id
// in the log of the function.
const requestLog = `{"requestId":"$context.requestId","extendedRequestId":"$context.extendedRequestId",` +
	`"functionRequestId":"$context.integration.requestId","time":"$context.requestTimeEpoch",` +
	`"status":"$context.status","functionLatency":"$context.integrationLatency","errorType":"$context.error.responseType",`

// accessLog is the format of the access log. It contains no header, no query string and no path
// with values of a client.
const accessLog = requestLog + `"method":"$context.httpMethod","route":"$context.resourcePath",` +
	`"bytes":"$context.responseLength","latency":"$context.responseLatency"}`

// route is a method of the API with its function.
type route struct {
	httpkit.Route
	function string
}

// routes returns the routes of the front doors, with HEAD for each GET, sorted by path and
// method.
func routes() []route {
	var all []route
	for _, name := range named(front) {
		for _, r := range functions[name].routes {
			all = append(all, route{r, name})
			if r.Method == http.MethodGet {
				r.Method = http.MethodHead
				all = append(all, route{r, name})
			}
		}
	}
	slices.SortFunc(all, func(a, b route) int {
		return slices.Compare([]string{a.Pattern, a.Method}, []string{b.Pattern, b.Method})
	})
	return all
}

// in returns the path of the route's resource: the route's own path, or everything below one of
// its parents.
func (r route) in(all []route) string {
	if r.Pattern == rootPattern {
		return "/"
	}
	for end, char := range r.Pattern {
		if parent := r.Pattern[:end+1]; char == '/' && end > 0 && parent != "/v1/" && r.collects(parent, all) {
			return parent + everythingBelow
		}
	}
	return r.Pattern
}

// collects reports whether the resource for everything below parent goes to the function of the
// route. The function must have at least two such paths, and more than any other function.
// Paths of other functions and of workers need their own resources below parent. Those must not
// begin with a parameter.
func (r route) collects(parent string, all []route) bool {
	paths := map[string]map[string]bool{} // by function
	for _, other := range all {
		below, ok := strings.CutPrefix(other.Pattern, parent)
		if !ok {
			continue
		}
		if other.alone(all) {
			if strings.HasPrefix(below, "{") || other.Pattern == r.Pattern {
				return false
			}
			continue
		}
		if paths[other.function] == nil {
			paths[other.function] = map[string]bool{}
		}
		paths[other.function][below] = true
	}
	for name, below := range paths {
		if name == r.function {
			continue
		}
		if len(below) >= len(paths[r.function]) {
			return false
		}
		for path := range below {
			if strings.HasPrefix(path, "{") {
				return false
			}
		}
	}
	return len(paths[r.function]) > 1
}

// alone reports whether the path of the route is for workers or has routes of several
// functions.
func (r route) alone(all []route) bool {
	return slices.ContainsFunc(all, func(other route) bool {
		return other.Pattern == r.Pattern && (other.function != r.function || other.Access == httpkit.ForWorkers)
	})
}

// newAPI adds the API without its methods, because functions refer to the API's URL.
func (b *builder) newAPI() awsapigateway.RestApi {
	s := b.settings
	logs := b.newLogGroup("LogsAccess", "")
	props := &awsapigateway.RestApiProps{
		RestApiName: jsii.String(b.name("api")), Description: jsii.String("Sortie, stage " + s.Stage),
		EndpointTypes: &[]awsapigateway.EndpointType{awsapigateway.EndpointType_REGIONAL},
		// Bodies are passed through unchanged.
		BinaryMediaTypes: jsii.Strings("*/*"),
		// Access logs need a role that all APIs of an account share.
		CloudWatchRole: jsii.Bool(true), CloudWatchRoleRemovalPolicy: awscdk.RemovalPolicy_RETAIN,
		DisableExecuteApiEndpoint: jsii.Bool(s.Domain != ""),
		DeployOptions: &awsapigateway.StageOptions{
			StageName:            jsii.String(s.Stage),
			ThrottlingRateLimit:  num(s.ClientRate),
			ThrottlingBurstLimit: num(burst * s.ClientRate),
			MethodOptions:        b.throttles(),
			LoggingLevel:         awsapigateway.MethodLoggingLevel_OFF, DataTraceEnabled: jsii.Bool(false),
			TracingEnabled:       jsii.Bool(s.Tracing),
			AccessLogDestination: awsapigateway.NewLogGroupLogDestination(logs),
			AccessLogFormat:      awsapigateway.AccessLogFormat_Custom(jsii.String(accessLog)),
		},
	}
	api := awsapigateway.NewRestApi(b.stack, jsii.String("Api"), props)
	api.Node().TryRemoveChild(jsii.String("Endpoint")) // the address without the domain
	b.addProblems(api)
	b.url = b.addressOf(api)
	return api
}

// addressOf returns the URL of the API.
func (b *builder) addressOf(api awsapigateway.RestApi) string {
	s := b.settings
	switch {
	case s.LocalStack != "":
		return s.LocalStack + "/_aws/execute-api/" + *api.RestApiId() + "/" + s.Stage
	case s.Domain == "":
		return "https://" + *api.RestApiId() + ".execute-api." + *b.stack.Region() + "." + *b.stack.UrlSuffix() + "/" + s.Stage
	}
	domain := awsapigateway.NewDomainName(b.stack, jsii.String("Domain"), &awsapigateway.DomainNameProps{
		DomainName:     jsii.String(s.Domain),
		Certificate:    awscertificatemanager.Certificate_FromCertificateArn(b.stack, jsii.String("Certificate"), jsii.String(s.Certificate)),
		EndpointType:   awsapigateway.EndpointType_REGIONAL,
		SecurityPolicy: awsapigateway.SecurityPolicy_TLS_1_2,
	})
	awsapigateway.NewBasePathMapping(b.stack, jsii.String("DomainMapping"), &awsapigateway.BasePathMappingProps{
		DomainName: domain, RestApi: api, Stage: api.DeploymentStage(),
	})
	b.result("DomainTarget", *domain.DomainNameAliasDomainName(), "the target of the domain's CNAME")
	return "https://" + s.Domain
}

// throttles returns a separate rate limit for the methods of workers. The limit of the stage is
// for clients. It applies to each method separately.
func (b *builder) throttles() *map[string]*awsapigateway.MethodDeploymentOptions {
	options := map[string]*awsapigateway.MethodDeploymentOptions{}
	for _, r := range routes() {
		if r.Access == httpkit.ForWorkers {
			options[r.Pattern+"/"+r.Method] = &awsapigateway.MethodDeploymentOptions{
				ThrottlingRateLimit: num(b.settings.WorkerRate), ThrottlingBurstLimit: num(burst * b.settings.WorkerRate),
				LoggingLevel: awsapigateway.MethodLoggingLevel_OFF, DataTraceEnabled: jsii.Bool(false),
			}
		}
	}
	return &options
}

// addRoutes adds the methods, each with its function as the integration. ANY of a path goes to
// the function of its first route. That function also answers 405 with the allowed methods, and
// CORS requests. A route has its own method only if it differs from ANY: it goes to another
// function or has the rate limit of workers. Paths below a parent that go to one function share
// a resource, because a stack has at most 500 resources.
func (b *builder) addRoutes(api awsapigateway.RestApi) {
	doors := map[string]awsapigateway.Integration{}
	for _, name := range named(front) {
		options := &awsapigateway.LambdaIntegrationOptions{
			ScopePermissionToMethod: jsii.Bool(false),
			Timeout:                 awscdk.Duration_Millis(num(bufferedTimeout)),
		}
		if b.settings.streamed(name) {
			options.ResponseTransferMode = awsapigateway.ResponseTransferMode_STREAM
			options.Timeout = awscdk.Duration_Seconds(num(b.settings.timeout(name) + 1))
		}
		doors[name] = awsapigateway.NewLambdaIntegration(b.callable(name), options)
	}
	others := map[string]string{} // the function of ANY by path
	all := routes()
	for _, r := range all {
		path := r.in(all)
		resource := api.Root().ResourceForPath(jsii.String(path))
		if others[path] == "" {
			others[path] = r.function
			resource.AddMethod(jsii.String(anyMethod), doors[r.function], nil)
		}
		if r.function != others[path] || r.Access == httpkit.ForWorkers {
			resource.AddMethod(jsii.String(r.Method), doors[r.function], nil)
		}
	}
}
