package stack

import (
	"encoding/json"

	"github.com/aws/aws-cdk-go/awscdk/v2/awssecretsmanager"
	"github.com/aws/jsii-runtime-go"

	"github.com/sortie-dev/sortie/shared/adapter/secrets"
)

// secretSet has the ARNs and names of the three secrets.
type secretSet struct {
	clients, fly, outputs             string
	clientsName, flyName, outputsName string
	// outputsSecret gets its value from the stack with outputs=s3.
	outputsSecret awssecretsmanager.CfnSecret
}

// addSecrets adds the secrets without values. "sortie secrets put" stores them, so that
// no template contains them. The secrets are deleted with the stack even if data is
// retained: their values can be issued again, and a remaining secret would block its
// name for the next deployment.
func (b *builder) addSecrets() {
	add := func(id, name, meaning string) awssecretsmanager.CfnSecret {
		return awssecretsmanager.NewCfnSecret(b.stack, jsii.String(id), &awssecretsmanager.CfnSecretProps{
			Name: jsii.String(name), Description: jsii.String(meaning),
		})
	}
	named := func(kind string) string { return secrets.Name(b.settings.Stage, kind) }
	s := secretSet{clientsName: named("clients"), flyName: named("fly"), outputsName: named("outputs")}
	s.clients = *add("SecretClients", s.clientsName, "the tokens of clients").Ref()
	s.fly = *add("SecretFly", s.flyName, "the token of the Machines API").Ref()
	s.outputsSecret = add("SecretOutputs", s.outputsName, "the keys to the outputs, Sortie's and the worker's")
	s.outputs = *s.outputsSecret.Ref()
	b.secrets = s
}

// fill sets the outputs secret to the keys, which are references in the template.
func (s secretSet) fill(keys secrets.Outputs) {
	text, err := json.Marshal(keys)
	if err != nil { // a struct of strings
		panic(err)
	}
	s.outputsSecret.SetSecretString(jsii.String(string(text)))
}
