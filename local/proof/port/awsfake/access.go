package awsfake

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
)

// signer is the identity that has signed a call, with the region and service of the signature.
type signer struct{ identity, region, service string }

// credential matches the credential scope of a signature (AWS Signature Version 4).
var credential = regexp.MustCompile(`Credential=([^/]+)/\d{8}/([^/]+)/([^/]+)/aws4_request`)

func signerOf(r *http.Request) (signer, error) {
	found := credential.FindStringSubmatch(r.Header.Get("Authorization"))
	if found == nil {
		return signer{}, errors.New("the call has no signature")
	}
	return signer{found[1], found[2], found[3]}, nil
}

// ServiceOf returns the service in the signature of a call, such as "dynamodb", or "" without a
// signature.
func ServiceOf(r *http.Request) string {
	s, _ := signerOf(r)
	return s.service
}

func operationOf(r *http.Request) string {
	target := r.Header.Get("X-Amz-Target")
	return target[strings.LastIndex(target, ".")+1:]
}

// called is a call with the values that determine its resources.
type called struct {
	signer
	r            *http.Request
	body         []byte
	stateMachine string
}

// arn returns the ARN of a resource in the fakes' account and the region of the call.
func (c called) arn(service, resource string) string {
	return "arn:aws:" + service + ":" + c.region + ":" + Account + ":" + resource
}

// accesses returns the permissions that a call needs (Service Authorization Reference).
func accesses(s signer, r *http.Request, body []byte, stateMachine string) ([]Access, error) {
	c := called{s, r, body, stateMachine}
	switch s.service {
	case "dynamodb":
		return c.dynamoDB()
	case "scheduler":
		return c.scheduler()
	case "lambda":
		name, err := url.PathUnescape(strings.TrimSuffix(strings.TrimPrefix(r.URL.EscapedPath(), "/2015-03-31/functions/"), "/invocations"))
		return []Access{{Action: "lambda:InvokeFunction", Resource: name}}, err
	case "execute-api":
		// The path has the ID of the API before the stage.
		api, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/execute-api/"), "/")
		stage, path, _ := strings.Cut(rest, "/")
		return []Access{{Action: "execute-api:ManageConnections", Resource: c.arn("execute-api", api+"/"+stage+"/"+r.Method+"/"+path)}}, nil
	}
	return c.json()
}

// json returns the accesses of a call whose JSON body names its resources.
func (c called) json() ([]Access, error) {
	var in struct {
		KeyID    string `json:"KeyId"`
		SecretID string `json:"SecretId"`
		QueueURL string `json:"QueueUrl"`
		Entries  []struct{ EventBusName string }

		StateMachineArn, ExecutionArn, TaskToken, Name string
	}
	if err := json.Unmarshal(c.body, &in); err != nil {
		return nil, fmt.Errorf("the fake cannot read the request: %w", err)
	}
	operation := operationOf(c.r)
	one := func(prefix, resource string) ([]Access, error) {
		return []Access{{Action: prefix + ":" + operation, Resource: resource}}, nil
	}
	switch c.service {
	case "states":
		switch {
		case in.ExecutionArn != "":
			return one("states", in.ExecutionArn)
		case in.TaskToken != "":
			return one("states", c.stateMachine)
		}
		parts := strings.SplitN(in.StateMachineArn, ":", 8)
		a := Access{Action: "states:" + operation, Resource: strings.Join(parts[:min(len(parts), 7)], ":")}
		if len(parts) == 8 {
			a.Context = map[string][]string{qualifier: parts[7:]}
		}
		return []Access{a}, nil
	case "kms":
		return one("kms", named(in.KeyID, c.arn("kms", "key/")))
	case "secretsmanager":
		arn := in.SecretID
		if !strings.HasPrefix(arn, "arn:") {
			arn = SecretARN(arn)
		}
		return one("secretsmanager", arn)
	case "ssm":
		return one("ssm", c.arn("ssm", "parameter/"+strings.TrimPrefix(in.Name, "/")))
	case "sqs":
		operation = strings.TrimSuffix(operation, "Batch")
		return one("sqs", c.arn("sqs", in.QueueURL[strings.LastIndex(in.QueueURL, "/")+1:]))
	case "events":
		var all []Access
		for _, e := range in.Entries {
			all = append(all, Access{Action: "events:" + operation, Resource: named(e.EventBusName, c.arn("events", "event-bus/"))})
		}
		return all, nil
	}
	return nil, fmt.Errorf("the fake does not know the permissions of %s", c.service)
}

// named returns id if it is an ARN, and otherwise the prefix followed by id.
func named(id, prefix string) string {
	if strings.HasPrefix(id, "arn:") {
		return id
	}
	return prefix + id
}

// SecretARN returns the ARN of the secret with the name. Like the ARNs of Secrets Manager, it
// ends in six characters.
func SecretARN(name string) string {
	return "arn:aws:secretsmanager:" + Region + ":" + Account + ":secret:" + name + "-AbCdEf"
}

// scheduler returns the accesses of a call for a schedule. A call with a role also needs
// iam:PassRole.
func (c called) scheduler() ([]Access, error) {
	var in Schedule
	if len(c.body) > 0 {
		if err := json.Unmarshal(c.body, &in); err != nil {
			return nil, fmt.Errorf("the fake cannot read the request: %w", err)
		}
	}
	group := in.GroupName
	if group == "" {
		group = c.r.URL.Query().Get("groupName")
	}
	name := strings.TrimPrefix(c.r.URL.Path, "/schedules/")
	all := []Access{{Action: "scheduler:" + operations[c.r.Method], Resource: c.arn("scheduler", "schedule/"+group+"/"+name)}}
	if in.Target.RoleArn != "" {
		all = append(all, Access{
			Action: "iam:PassRole", Resource: in.Target.RoleArn, Context: map[string][]string{passedToService: {"scheduler.amazonaws.com"}},
		})
	}
	return all, nil
}

// tableCall has the fields of DynamoDB calls that name tables and keys.
type tableCall struct {
	query
	Key, Item     item
	TransactItems []transactItem
	RequestItems  map[string]keysAndAttributes
}

// dynamoDB returns the accesses of a DynamoDB call. A transaction needs one access for each
// kind of action on a table, with the keys of all its actions on that table.
func (c called) dynamoDB() ([]Access, error) {
	var in tableCall
	if err := json.Unmarshal(c.body, &in); err != nil {
		return nil, fmt.Errorf("the fake cannot read the request: %w", err)
	}
	operation := operationOf(c.r)
	switch operation {
	case "TransactWriteItems":
		return c.transaction(in.TransactItems), nil
	case "BatchGetItem":
		var all []Access
		for name, part := range in.RequestItems {
			all = append(all, c.onTable(operation, name, "", partitions(part.Keys...)))
		}
		return all, nil
	case "Query", "Scan":
		return []Access{c.onTable(operation, in.TableName, in.IndexName, in.partition())}, nil
	case "GetItem", "PutItem", "UpdateItem", "DeleteItem":
		return []Access{c.onTable(operation, in.TableName, "", partitions(in.Key, in.Item))}, nil
	}
	return nil, fmt.Errorf("the fake does not know the permissions of dynamodb:%s", operation)
}

func (c called) onTable(operation, table, index string, keys []string) Access {
	a := Access{Action: "dynamodb:" + operation, Resource: named(table, c.arn("dynamodb", "table/"))}
	if index != "" {
		a.Resource += "/index/" + index
	}
	if len(keys) > 0 {
		a.Context = map[string][]string{leadingKeys: keys}
	}
	return a
}

func (c called) transaction(items []transactItem) []Access {
	keys := map[string][]string{}
	for _, each := range items {
		if _, a := each.action(); a != nil {
			keys[a.TableName] = append(keys[a.TableName], partitions(a.Key, a.Item)...)
		}
	}
	var all []Access
	for _, each := range items {
		operation, a := each.action()
		if a == nil {
			continue
		}
		if operation == "ConditionCheck" {
			operation = "ConditionCheckItem"
		}
		access := c.onTable(operation, a.TableName, "", keys[a.TableName])
		if !slices.ContainsFunc(all, func(b Access) bool { return b.Action == access.Action && b.Resource == access.Resource }) {
			all = append(all, access)
		}
	}
	return all
}

// partitions returns the distinct partition keys of the items.
func partitions(keys ...item) []string {
	var all []string
	for _, key := range keys {
		if v, ok := key[schema.Partition.Name].(*types.AttributeValueMemberS); ok && !slices.Contains(all, v.Value) {
			all = append(all, v.Value)
		}
	}
	return all
}

// partition returns the partition key of a query on the table or an index. It returns nil for a
// scan.
func (r *query) partition() []string {
	if r.KeyConditionExpression == nil {
		return nil
	}
	e := newExpressions(r.ExpressionAttributeNames, r.ExpressionAttributeValues)
	e.start(*r.KeyConditionExpression)
	e.attribute()
	e.expect("=")
	if v, ok := e.constant().(*types.AttributeValueMemberS); ok && e.err == nil {
		return []string{v.Value}
	}
	return nil
}
