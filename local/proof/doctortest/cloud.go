package doctortest

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// Cloud is a fake AWS account.
type Cloud struct {
	Account, ARN string
	// Errors maps permissions, such as "sts:GetCallerIdentity", to the error code of their
	// calls. In the query protocol ": " and a message may follow.
	Errors map[string]string
	// Bootstrap is the version of the bootstrap stack. Toolkit is the status of that stack;
	// empty means that it does not exist.
	Bootstrap, Toolkit string
	// Concurrency is Lambda's quota and Reserved the part that functions reserve. Requests is
	// API Gateway's quota. Requested is the value of a pending quota request.
	Concurrency, Reserved, Requests, Requested int
	// Status is the status of the stack sortie-prod; empty means no stack. Protected means that
	// its deletion must be confirmed.
	Status    string
	Protected bool
	Template  string
	Outputs   map[string]string
	// Events are the events of the stack, the latest first.
	Events []Event
	// Secrets maps names to values. Deleted are the secrets that are scheduled for deletion.
	Secrets map[string]string
	Deleted map[string]bool
	// Subscriptions maps addresses to the ARNs of their subscriptions to the topic.
	Subscriptions map[string]string
	// Certificates maps ARNs to the answers of ACM.
	Certificates map[string]map[string]any
	// Regions are the regions called. Called are the permissions of the calls.
	Regions, Called map[string]bool

	t *testing.T
}

// Event is an event of a stack.
type Event struct{ ID, Status, Reason string }

// stackID is the id of the stack.
const stackID = "arn:aws:cloudformation:eu-west-1:111122223333:stack/sortie-prod/1"

// config returns an SDK configuration for the server at url.
func (c *Cloud) config(url string) aws.Config {
	return aws.Config{
		Region: "us-east-1", BaseEndpoint: &url, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("AKIAEXAMPLE", "s3cret-of-aws", ""),
	}
}

// ServeHTTP answers a call.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	scope := strings.Split(r.Header.Get("Authorization"), "/")
	if len(scope) < 4 {
		c.t.Errorf("got a call that is not signed: %s %s", r.Method, r.URL)
		return
	}
	c.Regions[scope[2]] = true
	body, err := io.ReadAll(r.Body)
	if err != nil {
		c.t.Error(err)
	}
	_, operation, target := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	form, err := url.ParseQuery(string(body))
	switch {
	case target:
		c.json(w, operation, body)
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/account-settings"):
		c.answer(w, "lambda:GetAccountSettings", map[string]any{"AccountLimit": map[string]any{
			"ConcurrentExecutions": c.Concurrency, "UnreservedConcurrentExecutions": c.Concurrency - c.Reserved,
		}})
	case err == nil && form.Has("Action"):
		c.query(w, form)
	default:
		c.t.Errorf("got the call %s %s, want one that reads", r.Method, r.URL)
	}
}

// answer answers with JSON, or with the error that Errors has for the permission.
func (c *Cloud) answer(w http.ResponseWriter, permission string, out any) {
	c.Called[permission] = true
	if refused := c.Errors[permission]; refused != "" {
		w.Header().Set("X-Amzn-Errortype", refused)
		w.WriteHeader(http.StatusBadRequest)
		out = map[string]string{"__type": "com.amazonaws#" + refused, "message": "User: " + c.ARN + " is not authorized to perform: " + permission + " on this resource."}
	}
	if err := json.NewEncoder(w).Encode(out); err != nil {
		c.t.Error(err)
	}
}

// json serves the AWS JSON APIs.
func (c *Cloud) json(w http.ResponseWriter, operation string, body []byte) {
	var in struct{ Name, SecretId, CertificateArn string } //nolint:revive,staticcheck // the API's spelling
	if err := json.Unmarshal(body, &in); err != nil {
		c.t.Error(err)
	}
	refuse := func(permission, code string) {
		errors := c.Errors
		if errors[permission] == "" {
			c.Errors = map[string]string{permission: code}
		}
		c.answer(w, permission, nil)
		c.Errors = errors
	}
	switch operation {
	case "GetParameter":
		if in.Name != "/cdk-bootstrap/hnb659fds/version" || c.Bootstrap == "" {
			refuse("ssm:GetParameter", "ParameterNotFound")
			return
		}
		c.answer(w, "ssm:GetParameter", map[string]any{"Parameter": map[string]any{"Value": c.Bootstrap}})
	case "GetSecretValue":
		value, known := c.Secrets[in.SecretId]
		switch {
		case c.Deleted[in.SecretId]:
			refuse("secretsmanager:GetSecretValue", "InvalidRequestException")
		case !known:
			refuse("secretsmanager:GetSecretValue", "ResourceNotFoundException")
		default:
			c.answer(w, "secretsmanager:GetSecretValue", map[string]any{"SecretString": value})
		}
	case "GetServiceQuota":
		c.answer(w, "servicequotas:GetServiceQuota", map[string]any{"Quota": map[string]any{"Value": c.Requests}})
	case "ListRequestedServiceQuotaChangeHistoryByQuota":
		requests := []any{map[string]any{"Status": "CASE_CLOSED", "DesiredValue": 500}}
		if c.Requested > 0 {
			requests = append(requests, map[string]any{"Status": "CASE_OPENED", "DesiredValue": c.Requested})
		}
		c.answer(w, "servicequotas:ListRequestedServiceQuotaChangeHistoryByQuota", map[string]any{"RequestedQuotas": requests})
	case "DescribeCertificate":
		certificate, known := c.Certificates[in.CertificateArn]
		if !known {
			refuse("acm:DescribeCertificate", "ResourceNotFoundException")
			return
		}
		c.answer(w, "acm:DescribeCertificate", map[string]any{"Certificate": certificate})
	default:
		c.t.Errorf("got the operation %s, want one that reads", operation)
	}
}

// permissions maps operations of the query protocol to their permissions.
var permissions = map[string]string{
	"GetCallerIdentity": "sts:GetCallerIdentity", "DescribeStacks": "cloudformation:DescribeStacks", "GetTemplate": "cloudformation:GetTemplate",
	"DescribeStackEvents": "cloudformation:DescribeStackEvents", "ListSubscriptionsByTopic": "sns:ListSubscriptionsByTopic",
}

// query serves the APIs with the query protocol.
func (c *Cloud) query(w http.ResponseWriter, form url.Values) {
	action := form.Get("Action")
	permission, known := permissions[action]
	if !known {
		c.t.Errorf("got the action %s, want one that reads", action)
	}
	refused, result := c.Errors[permission], ""
	c.Called[permission] = true
	switch action {
	case "GetCallerIdentity":
		result = element("Account", c.Account) + element("Arn", c.ARN)
	case "DescribeStacks":
		result = c.stacks(form.Get("StackName"))
		if result == "" && refused == "" {
			refused = "ValidationError"
		}
	case "GetTemplate":
		result = element("TemplateBody", c.Template)
	case "DescribeStackEvents":
		for _, e := range c.Events {
			id := "physical"
			if e.ID == "sortie-prod" {
				id = stackID
			}
			result += "<member>" + element("LogicalResourceId", e.ID) + element("PhysicalResourceId", id) + element("ResourceStatus", e.Status) + element("ResourceStatusReason", e.Reason) + "</member>"
		}
		result = "<StackEvents>" + result + "</StackEvents>"
	case "ListSubscriptionsByTopic":
		if want := "arn:aws:sns:eu-west-1:111122223333:sortie-prod-alarms"; form.Get("TopicArn") != want {
			c.t.Errorf("got the topic %s, want %s", form.Get("TopicArn"), want)
		}
		for address, arn := range c.Subscriptions {
			result += "<member>" + element("Endpoint", address) + element("SubscriptionArn", arn) + "</member>"
		}
		result = "<Subscriptions>" + result + "</Subscriptions>"
	}
	if refused != "" {
		name, message, found := strings.Cut(refused, ": ")
		if !found {
			message = "User: " + c.ARN + " is not authorized to perform: " + permission + " on this resource."
		}
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, "<ErrorResponse><Error>%s%s</Error></ErrorResponse>", element("Code", name), element("Message", message))
		return
	}
	_, _ = fmt.Fprintf(w, "<%[1]sResponse><%[1]sResult>%[2]s</%[1]sResult></%[1]sResponse>", action, result)
}

// stacks returns the description of a stack, or "" if it does not exist.
func (c *Cloud) stacks(name string) string {
	status, protected, outputs := c.Toolkit, false, ""
	if name == "sortie-prod" {
		status, protected = c.Status, c.Protected
		for key, value := range c.Outputs {
			outputs += "<member>" + element("OutputKey", key) + element("OutputValue", value) + "</member>"
		}
	}
	if status == "" || name != "sortie-prod" && name != "CDKToolkit" {
		return ""
	}
	return "<Stacks><member>" + element("StackId", stackID) + element("StackStatus", status) +
		element("EnableTerminationProtection", fmt.Sprint(protected)) + "<Outputs>" + outputs + "</Outputs></member></Stacks>"
}

func element(name, value string) string {
	var text strings.Builder
	if err := xml.EscapeText(&text, []byte(value)); err != nil { // a Builder does not fail
		panic(err)
	}
	return "<" + name + ">" + text.String() + "</" + name + ">"
}
