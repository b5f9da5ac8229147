package org.apache.spark.kafka010;

import java.util.Map;
import org.apache.spark.SparkConf;
import scala.Option;

/** Scala's object KafkaTokenUtil, for brokers without delegation tokens. */
public final class KafkaTokenUtil$ {
  public static final KafkaTokenUtil$ MODULE$ = new KafkaTokenUtil$();

  private KafkaTokenUtil$() {}

  public Option<?> findMatchingTokenClusterConfig(SparkConf conf, String bootstrapServers) {
    return Option.empty();
  }

  public boolean needTokenUpdate(Map<String, Object> settings, Option<?> clusterConfig) {
    return false;
  }
}
