// Package doctortest runs everything that "sortie stage doctor" calls, in process: a fake AWS
// account, the Machines API and object store of local systems, a DNS and the API of the stage.
//
//	World ──Prod──► template, manifest, cdk.json
//	  ├── Cloud     STS, SSM, CloudFormation, Lambda, quotas, secrets, SNS, ACM
//	  ├── Fly       flymachines.Server
//	  ├── Store     s3.Server
//	  └── Run       the command, as a person calls it
//
// New returns a world in which everything is ready. A test breaks one part of it. The world
// fails the test on every call that changes something.
package doctortest
