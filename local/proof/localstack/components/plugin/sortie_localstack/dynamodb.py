"""DynamoDB Local from a plain folder of jars, $DYNAMODB_LOCAL, on any JDK from 17 on.

By default LocalStack downloads an archive, a Java agent and a JRE, which are not needed. If the variable is not set (in
the image, which has its own DynamoDB Local) nothing changes.
"""

import os

from localstack.runtime import hooks

MAIN = "com.amazonaws.services.dynamodbv2.local.main.ServerRunner"


@hooks.on_infra_start()
def run_from_a_folder():
    jars = os.environ.get("DYNAMODB_LOCAL")
    if not jars:
        return
    from localstack.services.dynamodb.packages import DynamoDBLocalPackageInstaller
    from localstack.services.dynamodb.server import DynamodbServer

    DynamoDBLocalPackageInstaller.install = lambda self, target=None: None
    DynamoDBLocalPackageInstaller.get_java_env_vars = lambda self: {}

    def command(self):
        # The mark identifies the process as this LocalStack's if it outlives it.
        mark = os.environ.get("SORTIE_LOCALSTACK", "")
        return [
            os.environ.get("SORTIE_JAVA", "java"),
            f"-Xmx{self.heap_size}",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            f"-Dsortie.localstack={mark}",
            f"-Djava.library.path={jars}",
            "-cp",
            f"{jars}/*",
            MAIN,
            "-port",
            str(self.port),
            "-inMemory",
            *(["-sharedDb"] if self.share_db else []),
        ]

    DynamodbServer._create_shell_command = command
