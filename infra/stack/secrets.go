package stack

import (
	"encoding/json"

	"github.com/aws/aws-cdk-go/awscdk/v2/awssecretsmanager"
	"github.com/aws/jsii-runtime-go"

	"github.com/sortie-dev/sortie/shared/adapter/secrets"
)

// secretSet are the ARNs of the three secrets, and their names.
type secretSet struct {
	clients, fly, outputs             string
	clientsName, flyName, outputsName string
	// outputsSecret is filled by the stack itself with outputs=s3.
	outputsSecret awssecretsmanager.CfnSecret
}

// addSecrets makes the secrets, empty: what others have issued is put in by
// "sortie secrets put" and never stands in a template. They go with the stack,
// whatever becomes of its data: what is in them can be issued anew, and a
// secret left behind would keep its name from the next deployment.
func (h *house) addSecrets() {
	add := func(id, name, meaning string) awssecretsmanager.CfnSecret {
		return awssecretsmanager.NewCfnSecret(h.stack, jsii.String(id), &awssecretsmanager.CfnSecretProps{
			Name: jsii.String(name), Description: jsii.String(meaning),
		})
	}
	named := func(kind string) string { return secrets.Name(h.settings.Stage, kind) }
	s := secretSet{clientsName: named("clients"), flyName: named("fly"), outputsName: named("outputs")}
	s.clients = *add("SecretClients", s.clientsName, "the tokens of clients").Ref()
	s.fly = *add("SecretFly", s.flyName, "the token of the Machines API").Ref()
	s.outputsSecret = add("SecretOutputs", s.outputsName, "the keys to the outputs, Sortie's and the worker's")
	s.outputs = *s.outputsSecret.Ref()
	h.secrets = s
}

// fill has CloudFormation put the keys in; the template only refers to them.
func (s secretSet) fill(keys secrets.Outputs) {
	text, err := json.Marshal(keys)
	if err != nil { // a struct of strings
		panic(err)
	}
	s.outputsSecret.SetSecretString(jsii.String(string(text)))
}
