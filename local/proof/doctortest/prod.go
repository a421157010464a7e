package doctortest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Prod describes the template of the stage prod, in the form of the CDK's.
type Prod struct {
	// Secrets are the kinds of the stage's secrets.
	Secrets []string
	FlyApps []string
	FlyURL  string
	// Own means that the buckets belong to the stack; otherwise they are Uploads and Accepted
	// in R2. NoOutputs means that the stage has no buckets.
	Own, NoOutputs    bool
	Uploads, Accepted string
	Endpoint          string
	// Reserved maps functions to their reserved concurrency.
	Reserved          map[string]int
	Readers, Machines int
	Rate              int
	Mail              string
	Domain            string
	Certificate       string
}

// JSON returns the template.
func (p Prod) JSON() string {
	resources := map[string]any{"Topic": resource("SNS::Topic", map[string]any{"TopicName": "sortie-prod-alarms"})}
	for _, kind := range p.Secrets {
		properties := map[string]any{"Name": "sortie/prod/" + kind}
		if kind == "outputs" && p.Own {
			properties["SecretString"] = map[string]any{"Fn::Join": []any{"", []any{`{"accessKeyId":"`, map[string]any{"Ref": "OutputsUserKey"}, `"}`}}}
		}
		resources["Secret"+strings.ToUpper(kind[:1])+kind[1:]] = resource("SecretsManager::Secret", properties)
	}
	variables := map[string]any{"SORTIE_READERS": fmt.Sprint(p.Readers), "SORTIE_MAX_MACHINES": fmt.Sprint(p.Machines)}
	if len(p.FlyApps) > 0 {
		variables["SORTIE_FLY_APPS"], variables["SORTIE_FLY_URL"] = strings.Join(p.FlyApps, ","), p.FlyURL
	}
	switch {
	case p.NoOutputs:
	case p.Own:
		variables["SORTIE_UPLOADS_BUCKET"], variables["SORTIE_ACCEPTED_BUCKET"] = map[string]any{"Ref": "Uploads"}, map[string]any{"Ref": "Accepted"}
		variables["SORTIE_OUTPUTS_ENDPOINT"] = p.Endpoint
	default:
		variables["SORTIE_UPLOADS_BUCKET"], variables["SORTIE_ACCEPTED_BUCKET"] = p.Uploads, p.Accepted
	}
	for _, name := range []string{"launch", "stream", "callback"} {
		properties := map[string]any{"FunctionName": "sortie-prod-" + name, "Environment": map[string]any{"Variables": variables}}
		if n, ok := p.Reserved[name]; ok {
			properties["ReservedConcurrentExecutions"] = n
		}
		resources[strings.ToUpper(name[:1])+name[1:]] = resource("Lambda::Function", properties)
	}
	resources["Stage"] = resource("ApiGateway::Stage", map[string]any{"MethodSettings": []any{map[string]any{"ThrottlingRateLimit": p.Rate}}})
	if p.Mail != "" {
		resources["Mail"] = resource("SNS::Subscription", map[string]any{"Protocol": "email", "Endpoint": p.Mail})
	}
	if p.Domain != "" {
		resources["Domain"] = resource("ApiGateway::DomainName", map[string]any{"DomainName": p.Domain, "RegionalCertificateArn": p.Certificate})
	}
	return text(map[string]any{"Resources": resources})
}

func resource(kind string, properties map[string]any) map[string]any {
	return map[string]any{"Type": "AWS::" + kind, "Properties": properties}
}

func text(value any) string {
	made, err := json.Marshal(value)
	if err != nil { // maps of texts and numbers
		panic(err)
	}
	return string(made)
}
