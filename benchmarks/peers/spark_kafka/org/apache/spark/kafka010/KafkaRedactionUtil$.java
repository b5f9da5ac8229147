package org.apache.spark.kafka010;

import scala.collection.immutable.Seq;

/** Scala's object KafkaRedactionUtil: there is nothing to hide in a benchmark. */
public final class KafkaRedactionUtil$ {
  public static final KafkaRedactionUtil$ MODULE$ = new KafkaRedactionUtil$();

  private KafkaRedactionUtil$() {}

  public Seq<?> redactParams(Seq<?> params) {
    return params;
  }
}
