"""Fields whose text a report shows: those of Kubernetes and of Sluice that explain what happens. Pure data.

A text below any other key is hidden. `tests/kubectl/views/test_hidden_by_default.py` compares the list with the CRD.
"""

from __future__ import annotations

OF_SLUICE = """
    acceptExpired activeShards after apiVersion arn at attempt attempts autoscale backoffSeconds base batch batchAt batches busy cap ceiling
    ceilingUntil changedAt checkpoints code conditions configMap configMapRef coolDownSeconds cores count deadLetter deadLetters deadline deaths
    digest draining drains driver dynamodbEndpoint earlier endedShards entrypoint env envFrom executor executors exit externalId failures
    finishedAt firstBatch forced format generation giveUpBatch hash heldShards id ignoreAttributes ignoreRows image imagePullPolicy imagePullSecrets
    inDriver
    interruptions isolate job kind kinesis kinesisEndpoint kmsKeyArn lag lastGoodSpec lastTransitionTime latest leaving limits max maxSlowdown
    message metadata migrateFrom migration millisBehindLatest min mountPath mountPropagation moved name named nextAt number observedGeneration
    onError openBatch openShards out passed path phase pipeline places pod podlessSince podTemplate pool position prefix progressingSince proven
    provenSpec quietSince readOnly readySeconds reason records recordsAgain recordsPassedOver recordsPerSecond recursiveReadOnly refused region
    replicas reportedAt requests reset resources restart restarts retry roleArn rollout rows sample seconds secondsPerRecord selector
    serviceAccountName sessionName shards since source spec specHash speed sqs standby start startedAt startFrom state status steps stopping
    strategy stream subPath suspend table targetLagSeconds text timestamp tip to trial tries trimHorizon type uid unstarted until valueFrom
    versions volumeMounts volumes warnings why worked workingSince
"""
OF_KUBERNETES = """
    items action involvedObject reportingComponent reportingInstance component host series firstTimestamp lastTimestamp eventTime lastObservedTime
    namespace resourceVersion creationTimestamp deletionTimestamp generateName ownerReferences controller blockOwnerDeletion finalizers
    managedFields manager operation time subresource containers initContainers ephemeralContainers ports containerPort protocol hostPort
    restartPolicy nodeName schedulerName priorityClassName preemptionPolicy dnsPolicy tolerations effect nodeSelectorTerms terminationMessagePath
    terminationMessagePolicy securityContext capabilities drop add seccompProfile readinessProbe livenessProbe startupProbe httpGet scheme port
    tcpSocket exec emptyDir medium sizeLimit persistentVolumeClaim claimName projected sources serviceAccountToken downwardAPI fieldRef fieldPath
    resourceFieldRef resource divisor configMapKeyRef hostPath storageClassName accessModes qosClass hostIP hostIPs ip podIP podIPs startTime
    containerStatuses initContainerStatuses ephemeralContainerStatuses containerID imageID lastState running waiting terminated exitCode signal
    lastProbeTime completionTime completions parallelism backoffLimit completionMode podReplacementPolicy template active failed succeeded ready
    uncountedTerminatedPods volumeMode csi topologySpreadConstraints topologyKey whenUnsatisfiable terminationGracePeriodSeconds
    activeDeadlineSeconds allocatedResources cpu memory ephemeral-storage enableServiceLinks volumeMountStatus observedSince
"""
OF_ENVIRONMENT = """
    SLUICE_LOG_LEVEL SLUICE_LOG_FORMAT SLUICE_NAMESPACE SLUICE_POD_NAME SLUICE_POD_IP SLUICE_POD_UID SLUICE_NODE_NAME AWS_REGION
    AWS_DEFAULT_REGION AWS_USE_FIPS_ENDPOINT AWS_USE_DUALSTACK_ENDPOINT AWS_ROLE_ARN TZ LANG LC_ALL PATH HOME USER HOSTNAME PYTHONPATH
    PYTHONUNBUFFERED PYTHONHASHSEED PYTHONDONTWRITEBYTECODE JAVA_HOME SPARK_HOME SPARK_USER SPARK_LOCAL_DIRS SPARK_CONF_DIR SPARK_EXECUTOR_ID
    SPARK_EXECUTOR_CORES SPARK_EXECUTOR_MEMORY SPARK_EXECUTOR_POD_NAME SPARK_EXECUTOR_POD_IP SPARK_DRIVER_BIND_ADDRESS SPARK_DRIVER_URL
    SPARK_DRIVER_MEMORY SPARK_APPLICATION_ID SPARK_RESOURCE_PROFILE_ID KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT OMP_NUM_THREADS
    OPENBLAS_NUM_THREADS MKL_NUM_THREADS MALLOC_ARENA_MAX
"""
OF_SPARK = """
    spark.master spark.app.name spark.submit.deployMode spark.serializer spark.sql.extensions spark.sql.session.timeZone spark.eventLog.dir
    spark.scheduler.mode spark.sql.shuffle.partitions spark.hadoop.fs.s3a.endpoint spark.hadoop.fs.s3a.endpoint.region spark.jars.packages
    spark.sql.defaultCatalog spark.kubernetes.namespace spark.kubernetes.container.image spark.driver.host spark.driver.bindAddress
    spark.executor.memory spark.executor.memoryOverhead spark.driver.memory spark.sql.parquet.compression.codec spark.io.compression.codec
"""

KNOWN = frozenset((OF_SLUICE + OF_KUBERNETES).split())
ENVIRONMENT = frozenset(OF_ENVIRONMENT.split())
"""Environment variables whose values are shown, by their whole names."""
SPARK = frozenset(OF_SPARK.split())
"""Spark settings whose text is shown. Numbers, flags, times and sizes of every setting are shown."""
LABELS = ("app.kubernetes.io/", "sluice.dev/", "batch.kubernetes.io/", "topology.kubernetes.io/", "spark-", "job-name", "controller-uid")
"""Labels and annotations whose text is shown, by the beginning of their names."""
FREE = frozenset(("args", "sparkConf", "labels", "annotations", "nodeSelector", "matchLabels"))
"""Objects with keys of somebody's own."""
