import java.io.FileWriter;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import javax.management.Attribute;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/**
 * Writes what brokers expose as a CSV: at whole multiples of five seconds, node by node in threads of their own, so that
 * a broker that is stopped keeps nobody waiting. Kafka's JmxTool asks for names once; errors' meters appear later.
 *
 * Arguments: file, then node=port for each broker. Columns: asked_ms, answered_ms, node, mbean, attribute, value.
 */
public class JmxReader {
    private static final long INTERVAL_MS = 5000;
    private static final List<String> WANTED = List.of(
        "kafka.network:type=RequestMetrics,*",
        "kafka.server:type=ReplicaManager,*",
        "kafka.server:type=ReplicaFetcherManager,*",
        "kafka.server:type=DelayedOperationPurgatory,*",
        "kafka.controller:*");

    public static void main(String[] arguments) throws Exception {
        PrintWriter out = new PrintWriter(new FileWriter(arguments[0], true), true);
        for (int n = 1; n < arguments.length; n++) {
            String[] node = arguments[n].split("=");
            Thread thread = new Thread(() -> read(out, node[0], node[1]));
            thread.start();
        }
    }

    private static void read(PrintWriter out, String node, String port) {
        MBeanServerConnection connection = null;
        while (true) {
            try {
                Thread.sleep(INTERVAL_MS - System.currentTimeMillis() % INTERVAL_MS);
                if (connection == null) {
                    String url = "service:jmx:rmi:///jndi/rmi://127.0.0.1:" + port + "/jmxrmi";
                    JMXConnector connector = JMXConnectorFactory.connect(new JMXServiceURL(url), Map.of());
                    connection = connector.getMBeanServerConnection();
                }
                long asked = System.currentTimeMillis();
                List<String> lines = new ArrayList<>();
                for (String pattern : WANTED) {
                    Set<ObjectName> names = new TreeSet<>(connection.queryNames(new ObjectName(pattern), null));
                    for (ObjectName name : names) {
                        lines.addAll(values(connection, name));
                    }
                }
                String times = asked + "," + System.currentTimeMillis() + "," + node + ",";
                synchronized (out) {
                    lines.forEach(line -> out.println(times + line));
                }
            } catch (InterruptedException end) {
                return;
            } catch (Exception gone) {
                connection = null; // killed, or not started again yet
            }
        }
    }

    private static List<String> values(MBeanServerConnection connection, ObjectName name) throws Exception {
        String type = name.getKeyProperty("type");
        if (type.equals("RequestMetrics") && ((Number) connection.getAttribute(name, "Count")).longValue() == 0) {
            return List.of(); // one for each of a hundred APIs
        }
        List<String> numbers = new ArrayList<>();
        for (MBeanAttributeInfo attribute : connection.getMBeanInfo(name).getAttributes()) {
            numbers.add(attribute.getName());
        }
        return connection.getAttributes(name, numbers.toArray(new String[0])).asList().stream()
            .filter(attribute -> attribute.getValue() instanceof Number)
            .map(attribute -> "\"" + name + "\"," + attribute.getName() + "," + attribute.getValue())
            .collect(Collectors.toList());
    }
}
