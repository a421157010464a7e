// Package doctortest is everything that "sortie stage doctor" calls, in process: an
// account of AWS, the local systems' Machines API and object store, a DNS and the API of
// the stage.
//
//	World ──Prod──► template, manifest, cdk.json
//	  ├── Cloud     STS, SSM, CloudFormation, Lambda, quotas, secrets, SNS, ACM
//	  ├── Fly       flymachines.Server
//	  ├── Store     s3.Server
//	  └── Run       the command, as a person calls it
//
// New returns a world in which everything is ready. A test breaks one thing of it. The
// world refuses every call that changes something.
package doctortest
